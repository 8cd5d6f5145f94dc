// Regular expressions in filters, in RE2 syntax and with the package re2js. Matching takes time linear in the
// length of the text, for every pattern.

import type { RE2JS } from 're2js';
import { latePackage } from '../common/late-package.js';

/**
 * Compiled programs of recent patterns, cached because a filter is evaluated on many segments and, over JSON, on one
 * document at a time. A program takes up to 8 MB in every thread.
 */
const PROGRAMS = new Map<string, RE2JS>();
/** The number of patterns that a filter may contain. */
const PROGRAMS_MAX = 16;

/** Loaded on first use, because it is a tenth of the code of a process. */
const re2 = latePackage<typeof import('re2js')>('re2js');

/** @param source must be valid. */
export function compilePattern(source: string): RE2JS {
  const known = PROGRAMS.get(source);
  if (known !== undefined) return known;
  const program = re2().RE2JS.compile(source);
  if (PROGRAMS.size >= PROGRAMS_MAX) PROGRAMS.delete(PROGRAMS.keys().next().value!);
  PROGRAMS.set(source, program);
  return program;
}

/** Returns the number of instructions of the program, or what is wrong with the pattern. */
export function checkPattern(
  source: string,
  instructionsMax: number,
): { readonly instructionCount: number } | { readonly problem: string } {
  // Compiling a few characters with nested repetitions can take a second.
  const estimate = countAtoms(source);
  if (estimate > instructionsMax) return { instructionCount: estimate };
  try {
    return { instructionCount: compilePattern(source).programSize() };
  } catch (error) {
    if (!(error instanceof re2().RE2JSException)) throw error;
    return { problem: error.message.replace(/^error parsing regexp: /, '') };
  }
}

const REPETITION = /\{(\d+)(?:,(\d*))?\}/y;
/** Flags and empty quotations, which match nothing: a repetition after them repeats what precedes them. */
const NOTHING = /\(\?[a-zA-Z-]*\)|\\Q\\E/y;

/**
 * Estimates the number of characters and classes in a pattern with its repetitions expanded. A program has at most a
 * few instructions for each.
 */
export function countAtoms(source: string): number {
  /** For each open group, outermost first: the number of all its atoms, and of those in its last item. */
  const groups = [{ all: 0, last: 0 }];
  let at = 0;
  while (at < source.length) {
    NOTHING.lastIndex = at;
    if (NOTHING.test(source)) {
      at = NOTHING.lastIndex;
      continue;
    }
    const end = itemEnd(source, at);
    const group = groups.at(-1)!;
    REPETITION.lastIndex = at;
    const [, countMin, countMax] = REPETITION.exec(source) ?? [];
    if (source[at] === '(') {
      groups.push({ all: 0, last: 0 });
    } else if (source[at] === ')' && groups.length > 1) {
      groups.pop();
      addItem(groups.at(-1)!, group.all + 1);
    } else if (countMin !== undefined) {
      const count = Math.max(1, Number(countMax || countMin));
      group.all += group.last * (count - 1);
      group.last *= count;
    } else if (/[*+?]/.test(source[at]!)) {
      // It becomes part of the item, because flags between two repetitions make the second repeat the first.
      group.all += 1;
      group.last += 1;
    } else {
      addItem(group, source.startsWith('\\Q', at) ? end - at : 1);
    }
    at = end;
  }
  return groups.reduce((sum, { all }) => sum + all, 0);
}

function addItem(group: { all: number; last: number }, count: number): void {
  group.all += count;
  group.last = count;
}

/** Returns the end of an escape, a character class, a repetition or a single character. */
function itemEnd(source: string, at: number): number {
  switch (source[at]) {
    case '\\':
      if (source[at + 1] === 'Q') return endAfter(source, '\\E', at + 2);
      return /^\\[pPx]\{/.test(source.slice(at, at + 3)) ? endAfter(source, '}', at + 3) : at + 2;
    case '[':
      return classEnd(source, at);
    case '{':
      REPETITION.lastIndex = at;
      return REPETITION.test(source) ? REPETITION.lastIndex : at + 1;
    default:
      return at + 1;
  }
}

/** Returns the end of the character class that begins at `at`, in which "]" may be the first character. */
function classEnd(source: string, at: number): number {
  let next = source[at + 1] === '^' ? at + 2 : at + 1;
  if (source[next] === ']') next++;
  while (next < source.length && source[next] !== ']') {
    const nameEnd = source.startsWith('[:', next) ? source.indexOf(':]', next + 2) : -1;
    if (nameEnd >= 0) next = nameEnd + 2;
    else next += source[next] === '\\' ? 2 : 1;
  }
  return next + 1;
}

function endAfter(source: string, text: string, from: number): number {
  const found = source.indexOf(text, from);
  return found < 0 ? source.length : found + text.length;
}
