// Long texts are made in turns of the event loop, one turn of one text at a time, so that short
// requests pass between them.

import { constants } from 'node:buffer';
import { SagittaError } from '../../common/errors.js';

/** About 30 ms of floats; what is shorter is made at once. */
const TURN_CHARACTERS = 1_000_000;

/** Those whose next turn has not come yet. */
const waiting: (() => void)[] = [];

/** Who makes a text tells how long it is by now; what this throws ends the making. */
export type OnGrown = (characterCount: number) => void;

/**
 * The texts of all items, parted by commas; a promise only where it takes more than one turn. Throws
 * `limit_exceeded` for what no text can hold.
 */
export function joinInTurns<Item>(
  items: readonly Item[],
  textOf: (item: Item) => string,
  onGrown: OnGrown,
): string | Promise<string> {
  const pieces: string[] = [];
  let end = appendTurn(items, 0, textOf, pieces);
  if (end === items.length) return pieces.join(',');
  return (async () => {
    let characterCount = 0;
    let countedPieces = 0;
    for (;;) {
      for (; countedPieces < pieces.length; countedPieces++) {
        characterCount += pieces[countedPieces]!.length + 1;
      }
      // Half of it leaves room for what goes around, and for characters of two bytes.
      if (characterCount > constants.MAX_STRING_LENGTH / 2) throw tooLong(end, items.length);
      onGrown(characterCount);
      if (end === items.length) return pieces.join(',');
      await nextTurn();
      end = appendTurn(items, end, textOf, pieces);
    }
  })();
}

/** Appends one piece, the texts of as many items as make a turn, and returns where it ends. */
function appendTurn<Item>(
  items: readonly Item[],
  start: number,
  textOf: (item: Item) => string,
  pieces: string[],
): number {
  const texts: string[] = [];
  let characterCount = 0;
  let at = start;
  while (at < items.length && characterCount < TURN_CHARACTERS) {
    const text = textOf(items[at++]!);
    texts.push(text);
    characterCount += text.length;
  }
  pieces.push(texts.join(','));
  return at;
}

/** Resolves when it is the turn of whoever has waited longest. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(giveTurn);
  });
}

/** One at a time: all that wait for the same turn would make it as long as they are many. */
function giveTurn(): void {
  waiting.shift()!();
  if (waiting.length > 0) setImmediate(giveTurn);
}

function tooLong(madeCount: number, itemCount: number): SagittaError {
  return new SagittaError(
    'limit_exceeded',
    `The reply is too long for one page: ${madeCount} of ${itemCount} rows make more than ${constants.MAX_STRING_LENGTH / 2} characters. Ask for fewer, or without values.`,
  );
}
