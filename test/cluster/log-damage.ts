// Kinds of damage to the messages of a log with four commits, each with fragments for the shards 1 and 2.

import assert from 'node:assert/strict';
import type { StreamMessage } from '../../src/cluster/logs/message-stream.js';

export const damages: Readonly<Record<string, (messages: StreamMessage[]) => StreamMessage[]>> = {
  'a flipped bit in a part': (messages) => changed(messages, ({ channel }) => channel === 1),
  'a flipped bit in a record': (messages) =>
    changed(messages, ({ channel, position }) => channel === 'chain' && position > 5),
  'a part that is missing': (messages) => without(messages, ({ channel }) => channel === 1),
  'a message of a part that is missing': (messages) =>
    without(messages, ({ channel, position }) => channel === 2 && position > 4),
  'an end that is missing, of which no later record tells': (messages) => messages.slice(0, -4),
  'a claim that is missing': (messages) => without(messages, ({ channel }) => channel === 'claim'),
  'a commit that is missing': (messages) => {
    const records = messages.filter(({ channel }) => channel === 'chain');
    const { position } = records[2]!;
    const { position: before } = records[1]!;
    return messages.filter((message) => message.position <= before || message.position > position);
  },
};

export function without(
  messages: StreamMessage[],
  choose: (message: StreamMessage) => boolean,
): StreamMessage[] {
  const chosen = messages.find(choose);
  assert.ok(chosen !== undefined);
  return messages.filter((message) => message !== chosen);
}

/** Flips one bit in the first chosen message, and restores it when called again. */
export function changed(
  messages: StreamMessage[],
  choose: (message: StreamMessage) => boolean,
): StreamMessage[] {
  const chosen = messages.find(choose);
  assert.ok(chosen !== undefined);
  const bytes = Uint8Array.from(chosen.bytes);
  bytes[bytes.length >> 1]! ^= 1;
  return messages.map((message) => (message === chosen ? { ...message, bytes } : message));
}
