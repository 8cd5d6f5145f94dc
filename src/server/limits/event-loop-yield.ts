// Lets long work on the event loop give way to other requests. Yielded work is resumed one caller at a time.

/** The callers that have yielded, in order. */
const waiting: (() => void)[] = [];

/** Resolves in a later iteration of the event loop, in the order of the calls. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(resumeNext);
  });
}

/** One caller per iteration, since all of them together could block the event loop. */
function resumeNext(): void {
  waiting.shift()!();
  if (waiting.length > 0) setImmediate(resumeNext);
}
