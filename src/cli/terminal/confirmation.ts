// Asks the user on a terminal before a command does something that cannot be undone or that locks others out.

import { createInterface } from 'node:readline';
import { CliError, EXIT_CODES } from './failure.js';

/** Whether a question can be asked. stdout need not be a terminal: it is captured in KEY=$(sagitta keys create …). */
export function isInteractive(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** Asks on stderr and returns the answer, which is empty at the end of the input. Throws CliError after Ctrl-C. */
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
