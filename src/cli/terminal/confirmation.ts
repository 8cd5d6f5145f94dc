// Questions to the user of a terminal, before something that cannot be undone or locks others out.

import { createInterface } from 'node:readline';
import { CliError, EXIT_CODES } from './failure.js';

/** Whether a question can be asked: stdout may be captured, as in KEY=$(sagitta keys create …). */
export function isInteractive(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** The answer, on stderr; empty at the end of the input. Throws CliError after Ctrl-C. */
export function ask(question: string): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise<string>((resolve, reject) => {
    prompt.on('SIGINT', () => {
      process.stderr.write('\n');
      reject(new CliError('interrupted', { exitCode: EXIT_CODES.interrupted }));
    });
    prompt.on('close', () => resolve(''));
    prompt.question(question, (answer) => resolve(answer.trim()));
  }).finally(() => prompt.close());
}
