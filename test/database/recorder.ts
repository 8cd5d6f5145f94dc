// An observer of a database that keeps what it is told.

import type { DatabaseObserver } from '../../src/database/api/observer.js';

type MetricName = Parameters<DatabaseObserver['count' | 'observe']>[0];

export interface Recorder extends DatabaseObserver {
  /** What came under the name, in this order: the value, or with labels both. */
  of(name: MetricName): readonly unknown[];
  clear(): void;
}

export function createRecorder(): Recorder {
  const seen: { readonly name: MetricName; readonly what: unknown }[] = [];
  const note: DatabaseObserver['count'] & DatabaseObserver['observe'] = (name, value, labels) => {
    seen.push({ name, what: labels === undefined ? value : [value, labels] });
  };
  return {
    count: note,
    observe: note,
    of: (wanted) => seen.flatMap(({ name, what }) => (name === wanted ? [what] : [])),
    clear: () => seen.splice(0),
  };
}
