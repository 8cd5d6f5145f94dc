// The actions of a search form: start and, while the search runs, progress and stop.

import { Search, Square } from 'lucide-react';
import { Button } from '../../ui/button.js';
import { formatCount, pluralize } from '../../ui/format.js';
import styles from './duplicates.module.css';

interface SearchActionsProps {
  /** The label of the button that starts the search. */
  readonly action: string;
  readonly isReady: boolean;
  /** The number of vectors compared so far and a text about the results; undefined unless the search is running. */
  readonly progress: { readonly rowCount: number; readonly found: string } | undefined;
  /** The number of all vectors, including those that a filter excludes. */
  readonly total: number;
  readonly onStop: () => void;
}

export function SearchActions({ action, isReady, progress, total, onStop }: SearchActionsProps) {
  if (progress === undefined) {
    return (
      <div className={styles.submit}>
        <Button type="submit" kind="primary" icon={Search} disabled={!isReady}>
          {action}
        </Button>
      </div>
    );
  }
  const { rowCount, found } = progress;
  return (
    <div className={styles.submit}>
      <Button icon={Square} onClick={onStop}>
        Stop
      </Button>
      <div className={styles.progress}>
        <progress aria-label="Vectors compared" value={rowCount} max={Math.max(total, 1)} />
        <span>
          {formatCount(rowCount)} of {pluralize(total, 'vector')} compared, {found}
        </span>
      </div>
    </div>
  );
}
