// How far a join is: the vectors compared so far, and what it has found.

import type { ReactNode } from 'react';
import { formatCount, pluralize } from '../../ui/format.js';
import styles from './duplicates.module.css';

interface SearchProgressProps {
  readonly rowCount: number;
  /** All vectors; a filter leaves some out. */
  readonly total: number;
  readonly children: ReactNode;
}

export function SearchProgress({ rowCount, total, children }: SearchProgressProps) {
  return (
    <div className={styles.progress}>
      <progress aria-label="Vectors compared" value={rowCount} max={Math.max(total, 1)} />
      <span>
        {formatCount(rowCount)} of {pluralize(total, 'vector')} compared, {children}
      </span>
    </div>
  );
}
