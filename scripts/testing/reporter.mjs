// A reporter for Node's test runner that writes events as lines of JSON to the pipe of scripts/testing/process.mjs.
// `begin` and `complete` arrive as they happen, `start` and `end` in the order of the file.

import { writeSync } from 'node:fs';

const PIPE = 3;

// biome-ignore lint/correctness/useYield: the runner takes a reporter that prints nothing
export default async function* report(source) {
  for await (const { type, data } of source) {
    const event = toEvent(type, data);
    if (event !== null) writeSync(PIPE, `${JSON.stringify(event)}\n`);
  }
}

function toEvent(type, data) {
  const { nesting: depth, name } = data;
  switch (type) {
    case 'test:dequeue':
      return { type: 'begin', depth, name };
    case 'test:complete':
      return { type: 'complete', depth, name };
    case 'test:start':
      return { type: 'start', depth, name };
    case 'test:pass':
    case 'test:fail':
      return {
        type: 'end',
        depth,
        name,
        isSuite: data.details.type === 'suite',
        skip: data.skip === true ? 'without a reason' : data.skip || undefined,
        todo: data.todo,
        seconds: data.details.duration_ms / 1_000,
        ...(type === 'test:fail' && describeFailure(data.details.error)),
      };
    case 'test:diagnostic':
      // Node reports errors that no test threw as diagnostics; all other diagnostics are counts.
      return /Error|Warning/.test(data.message) ? { type: 'notice', message: data.message } : null;
    default:
      return null;
  }
}

function describeFailure(error) {
  // Node wraps errors that tests throw.
  const cause = error.cause ?? error;
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  const details = cause?.cause instanceof Error ? `\ncaused by: ${cause.cause.stack}` : '';
  return { error: text + details, failureType: error.failureType };
}
