// The name of a metric wherever the console shows one.

import type { Metric } from '@sagitta/client';

/** The name that requests use, so that what is read here can be typed there. */
export function metricName(metric: Metric): string {
  return metric;
}
