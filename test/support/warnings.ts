// Fails if work adds so many listeners to one object that Node warns of a leak.

import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Runs the work; throws if Node warned meanwhile that an object has too many listeners. */
export async function withoutListenerWarnings<Value>(work: () => Promise<Value>): Promise<Value> {
  const warnings: string[] = [];
  const add = ({ name, message }: Error) => {
    if (name === 'MaxListenersExceededWarning') warnings.push(message);
  };
  process.on('warning', add);
  try {
    const value = await work();
    // Node emits warnings after the current turn of the event loop.
    await nextTurn();
    assert.deepEqual(warnings, []);
    return value;
  } finally {
    process.off('warning', add);
  }
}
