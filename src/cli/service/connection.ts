// The options that name a server (--url, --api-key), their environment variables, and the client created from them. The
// settings of the server itself are in platform/config.ts.

import { type Client, type ClientOptions, createClient, SagittaClientError } from '@sagitta/client';
import type { Command } from 'commander';
import { usageError } from '../terminal/failure.js';
import { addJsonOption, type PrintOptions } from '../terminal/printing.js';

const DEFAULT_URL = 'http://127.0.0.1:8484';

export interface ConnectionOptions {
  readonly url?: string;
  readonly apiKey?: string;
}

export function addConnectionOptions(
  command: Command,
  urlHelp = `server address (default: SAGITTA_URL or ${DEFAULT_URL})`,
): Command {
  return command
    .option('--url <address>', urlHelp)
    .option('--api-key <key>', 'API key, sent as a bearer token (default: SAGITTA_API_KEY)');
}

/** The options of commands that print the reply of a server. */
export type ReplyOptions = ConnectionOptions & PrintOptions;

export function addReplyOptions(command: Command): Command {
  return addConnectionOptions(addJsonOption(command));
}

export function connect(
  options: ConnectionOptions,
  rest: Pick<ClientOptions, 'retry' | 'fetch'> = {},
): Client {
  const apiKey = options.apiKey ?? process.env.SAGITTA_API_KEY;
  const shown = new Set<string>();
  try {
    return createClient({
      baseUrl: urlOf(options),
      onWarning({ detail }) {
        if (!shown.has(detail)) process.stderr.write(`Warning: ${detail}\n`);
        shown.add(detail);
      },
      ...rest,
      ...(apiKey !== undefined && apiKey !== '' && { apiKey }),
      // Few attempts, so that a user learns within half a second that no server answers.
      retry: { attemptsMax: 3, ...rest.retry },
    });
  } catch (error) {
    if (!(error instanceof SagittaClientError)) throw error;
    throw usageError(
      error.detail.replace(/^baseUrl/, options.url === undefined ? 'SAGITTA_URL' : '--url'),
    );
  }
}

export function urlOf(options: ConnectionOptions): string {
  return options.url ?? process.env.SAGITTA_URL ?? DEFAULT_URL;
}

/** The environment without the client's variables: the server rejects unknown SAGITTA_ names. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  const { SAGITTA_URL: _url, SAGITTA_API_KEY: _apiKey, ...rest } = process.env;
  return rest;
}
