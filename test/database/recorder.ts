// An observer that records the metrics of a database.

import type { DatabaseObserver } from '../../src/database/api/observer.js';

type MetricName = Parameters<DatabaseObserver['count' | 'observe']>[0];

export interface Recorder extends DatabaseObserver {
  /** The reported values of a metric in order, with their labels if any. */
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
    written() {},
    of: (wanted) => seen.flatMap(({ name, what }) => (name === wanted ? [what] : [])),
    clear: () => seen.splice(0),
  };
}
