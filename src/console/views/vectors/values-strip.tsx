// The values of a vector as a small strip of bars around zero.

import { useMemo } from 'react';
import { stripPath } from './values-shape.js';
import styles from './vectors.module.css';

interface ValuesStripProps {
  readonly values: ArrayLike<number>;
}

export function ValuesStrip({ values }: ValuesStripProps) {
  const path = useMemo(() => stripPath(values), [values]);
  return (
    <svg
      className={styles.strip}
      viewBox="0 0 64 16"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${values.length} values`}
    >
      <path d={path} fill="currentColor" />
    </svg>
  );
}
