// Helpers for the tests of keys: `sagitta keys`, servers, and requests with keys.

import assert from 'node:assert/strict';
import { type Agent, get } from 'node:http';
import type { ApiKeyRecord } from '@sagitta/client';
import { type CommandResult, type RunningCommand, run, start } from './command.js';
import { serverVariables } from './serve-settings.js';

/** The output of `sagitta keys create`. */
export const KEY = /^sk_[0-9A-Za-z]{16}_[0-9A-Za-z]{43}\n$/;

/** Runs `sagitta keys` with space-separated arguments. */
export const keys = (directory: string, words: string): Promise<CommandResult> =>
  run(['keys', ...words.split(' ')], { env: { SAGITTA_DATA_DIR: directory } });

export async function succeed(calling: Promise<CommandResult>): Promise<string> {
  const { code, stdout, stderr } = await calling;
  assert.equal(code, 0, stderr);
  return stdout;
}

export async function assertFailure(
  directory: string,
  exitCode: number,
  [words, message]: readonly [words: string, message: RegExp],
): Promise<void> {
  const { code, stdout, stderr } = await keys(directory, words);
  assert.deepEqual([code, stdout], [exitCode, ''], words);
  assert.match(stderr, message);
}

export const create = async (
  directory: string,
  words = '--owner me --scope admin',
): Promise<string> => {
  const stdout = await succeed(keys(directory, `create ${words}`));
  assert.match(stdout, KEY);
  return stdout.trim();
};

export const idOf = (key: string): string => key.split('_')[1]!;

export async function list(directory: string): Promise<ApiKeyRecord[]> {
  return JSON.parse(await succeed(keys(directory, 'list --json'))).keys;
}

export function serve(
  directory: string,
  settings: Readonly<Record<string, string>> = {},
): RunningCommand {
  return start(['serve'], {
    env: serverVariables(directory, { SAGITTA_LOG_LEVEL: 'debug', ...settings }),
  });
}

/** Stops the server as a process manager does. */
export async function stop(server: RunningCommand): Promise<CommandResult> {
  server.signal('SIGTERM');
  const result = await server.ended;
  assert.equal(result.code, 0, result.stderr);
  return result;
}

/** One request over a keep-alive connection; `isNew` tells whether the connection was new. */
export function ask(
  agent: Agent,
  url: string,
  key?: string,
): Promise<{ status: number; isNew: boolean }> {
  return new Promise((resolve, reject) => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const outgoing = get(`${url}/v1/collections`, { agent, headers }, (reply) => {
      reply.resume();
      reply.on('end', () => {
        resolve({ status: reply.statusCode!, isNew: !outgoing.reusedSocket });
      });
    });
    outgoing.on('error', reject);
  });
}
