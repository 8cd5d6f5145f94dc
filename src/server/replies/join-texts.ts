// Joins the texts of many items in chunks, with yields to the event loop in between, so that short requests
// are served meanwhile.

import { constants } from 'node:buffer';
import { SagittaError } from '../../common/errors.js';
import { yieldToEventLoop } from '../limits/event-loop-yield.js';

/** Written in less than 2 ms if it consists of floats. Shorter texts are joined without a yield. */
const CHUNK_CHARACTERS = 64 * 1024;

/** Called with the length of a growing text; may throw to stop it. */
export type OnGrown = (characterCount: number) => void;

/**
 * The texts of all items, separated by commas; a promise only if there is more than one chunk. Throws
 * `limit_exceeded` if the text would be too long for a string.
 */
export function joinTexts<Item>(
  items: readonly Item[],
  textOf: (item: Item) => string,
  onGrown: OnGrown,
): string | Promise<string> {
  const chunks: string[] = [];
  let end = appendChunk(items, 0, textOf, chunks);
  if (end === items.length) return chunks.join(',');
  return (async () => {
    let characterCount = 0;
    let countedChunks = 0;
    for (;;) {
      for (; countedChunks < chunks.length; countedChunks++) {
        characterCount += chunks[countedChunks]!.length + 1;
      }
      // Half of the maximum leaves room for the rest of the reply and for two-byte characters.
      if (characterCount > constants.MAX_STRING_LENGTH / 2) throw tooLong(end, items.length);
      onGrown(characterCount);
      if (end === items.length) return chunks.join(',');
      await yieldToEventLoop();
      end = appendChunk(items, end, textOf, chunks);
    }
  })();
}

/** Appends one chunk and returns the index of the item after it. */
function appendChunk<Item>(
  items: readonly Item[],
  start: number,
  textOf: (item: Item) => string,
  chunks: string[],
): number {
  const texts: string[] = [];
  let characterCount = 0;
  let at = start;
  while (at < items.length && characterCount < CHUNK_CHARACTERS) {
    const text = textOf(items[at++]!);
    texts.push(text);
    characterCount += text.length;
  }
  chunks.push(texts.join(','));
  return at;
}

function tooLong(madeCount: number, itemCount: number): SagittaError {
  return new SagittaError(
    'limit_exceeded',
    `The reply is too long for one page: ${madeCount} of ${itemCount} rows take more than ${constants.MAX_STRING_LENGTH / 2} characters. Request fewer rows, or omit values.`,
  );
}
