// The options by which a command finds its server, and the client made from them. Their variables
// are the client's: the server's settings are in config.ts.

import type { Command } from 'commander';
import { type Client, type ClientOptions, createClient } from '../client/client.js';

export const DEFAULT_URL = 'http://127.0.0.1:8484';

export interface ConnectionOptions {
  readonly url?: string;
  readonly apiKey?: string;
}

export function addConnectionOptions(
  command: Command,
  urlHelp = `the server; else SAGITTA_URL, else ${DEFAULT_URL}`,
): Command {
  return command
    .option('--url <address>', urlHelp)
    .option('--api-key <key>', 'sent as a bearer token; else SAGITTA_API_KEY');
}

export function connect(
  options: ConnectionOptions,
  rest: Pick<ClientOptions, 'retry' | 'fetch'> = {},
): Client {
  const apiKey = options.apiKey ?? process.env.SAGITTA_API_KEY;
  return createClient({
    baseUrl: urlOf(options),
    ...rest,
    ...(apiKey !== undefined && apiKey !== '' && { apiKey }),
    // Somebody waits: a server that is not there is told of within half a second.
    retry: { attemptsMax: 3, ...rest.retry },
  });
}

export function urlOf(options: ConnectionOptions): string {
  return options.url ?? process.env.SAGITTA_URL ?? DEFAULT_URL;
}

/** The environment as the server takes it, which refuses names that it does not know. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  const { SAGITTA_URL: _url, SAGITTA_API_KEY: _apiKey, ...rest } = process.env;
  return rest;
}
