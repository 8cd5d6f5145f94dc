// A JSON file of the configuration, which is reloaded when it changes. Invalid new contents are ignored.

import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { readConfiguredFile } from '../transport/tls.js';
import { reloadOnChange } from '../transport/watched-files.js';

export interface WatchedJson<Value> {
  /** The value of the last valid contents. */
  readonly value: Value;
  close(): void;
}

/**
 * `what` names the file in errors and in the log; `parse` throws `configuration_invalid` for contents
 * that are not valid. Throws `configuration_invalid`, which names the file and the problem.
 */
export async function openWatchedJson<Value>(
  { what, path, logger }: { what: string; path: string; logger: Logger },
  parse: (json: unknown) => Value,
): Promise<WatchedJson<Value>> {
  const read = async () => (await readConfiguredFile(what, path)).toString();
  const valueIn = (source: string) => parse(parseJson(source, what, path));
  let text = await read();
  let value = valueIn(text);
  const reload = async () => {
    const found = await read();
    if (found === text) return;
    value = valueIn(found);
    text = found;
    logger.info({ path }, `${what} reloaded`);
  };
  const watched = reloadOnChange([path], reload, {
    logger,
    failureMessage: `${what} not reloaded: the previous one stays in use`,
  });
  return {
    get value() {
      return value;
    },
    close: () => watched.close(),
  };
}

function parseJson(text: string, what: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SagittaError(
      'configuration_invalid',
      `The ${what} ${path} is not valid JSON: ${(error as Error).message}.`,
      { cause: error },
    );
  }
}
