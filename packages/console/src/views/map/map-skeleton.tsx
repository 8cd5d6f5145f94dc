// The map while its data are loading: the canvas with the progress, and a legend in the shape of the one that comes.

import type { CollectionRecord, FoundPath } from '@sagitta/client';
import { useFoundPaths } from '../../api/queries.js';
import { Progress } from '../../ui/progress.js';
import type { JobProgress } from '../../ui/remaining-time.js';
import { OTHER_ENTRY } from './column-colours.js';
import styles from './map.module.css';
import { useColourPath } from './use-point-colours.js';

interface MapSkeletonProps {
  readonly collection: CollectionRecord;
  readonly progress: JobProgress | undefined;
  readonly onStop: () => void;
}

export function MapSkeleton({ collection, progress, onStop }: MapSkeletonProps) {
  const path = useColourPath(collection);
  return (
    <div className={styles.main}>
      <div className={styles.projecting} role="status">
        <Progress label="Projecting the vectors" progress={progress} onStop={onStop} />
      </div>
      <aside className={styles.side} aria-label="Legend">
        <LegendSkeleton collection={collection} path={path} />
      </aside>
    </div>
  );
}

interface LegendSkeletonProps {
  readonly collection: CollectionRecord;
  readonly path: string;
}

export function LegendSkeleton({ collection, path }: LegendSkeletonProps) {
  const { data: found } = useFoundPaths(collection.id);
  return (
    <div role="status">
      <span className="visually-hidden">Loading the legend…</span>
      {Array.from({ length: entryCount(path, found) }, (_, entry) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the entries are all the same
        <div key={entry} className={styles.entry} aria-hidden>
          <span className={styles.bone} data-shape="swatch" />
          <span className={styles.bone} data-shape="label" />
          <span className={styles.bone} data-shape="count" />
        </div>
      ))}
    </div>
  );
}

/** The number of entries that the legend of a path will have. */
function entryCount(path: string, found: readonly FoundPath[] | undefined): number {
  if (found === undefined) return OTHER_ENTRY;
  const distinct = found.find((one) => one.path === path)?.distinct_count ?? 0;
  // The others share an entry.
  return Math.min(OTHER_ENTRY + 1, distinct);
}
