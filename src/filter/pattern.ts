// Regular expressions of filters in the syntax of RE2, by the package re2js: matching takes time linear in
// the text, whatever the pattern.

import { RE2JS, RE2JSException } from 're2js';

/**
 * Programs of recent patterns: a filter is evaluated on many segments, and on one document at a time. As
 * many as a filter may have; each takes up to 8 MB in every thread.
 */
const PROGRAMS = new Map<string, RE2JS>();
const PROGRAMS_MAX = 16;

/** The pattern must be valid. */
export function compilePattern(source: string): RE2JS {
  const known = PROGRAMS.get(source);
  if (known !== undefined) return known;
  const program = RE2JS.compile(source);
  if (PROGRAMS.size >= PROGRAMS_MAX) PROGRAMS.delete(PROGRAMS.keys().next().value!);
  PROGRAMS.set(source, program);
  return program;
}

/** The number of instructions of the program, or what is wrong with the pattern. */
export function checkPattern(
  source: string,
): { readonly instructionCount: number } | { readonly problem: string } {
  try {
    return { instructionCount: compilePattern(source).programSize() };
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    return { problem: error.message.replace(/^error parsing regexp: /, '') };
  }
}
