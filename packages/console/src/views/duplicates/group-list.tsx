// The groups as a virtualised list.

import type { CollectionRecord } from '@sagitta/client';
import { useStore } from '../../api/store.js';
import { usePageVirtualizer } from '../../ui/page-virtualizer.js';
import { keepChoicesOf } from './duplicate-search.js';
import { GroupCard } from './group-card.js';
import styles from './group-card.module.css';
import type { SimilarGroup } from './similar-pairs.js';
import type { KeptOf } from './use-keeping.js';

interface GroupListProps {
  readonly collection: CollectionRecord;
  readonly groups: readonly SimilarGroup[];
  readonly keptOf: KeptOf;
}

export function GroupList({ collection, groups, keptOf }: GroupListProps) {
  const choices = keepChoicesOf(collection.id);
  useStore(choices);
  const { virtualizer, listRef, offset } = usePageVirtualizer<HTMLUListElement>({
    count: groups.length,
    estimateHeight: 200,
    gap: 12,
    keyOf: (at) => keyOf(groups[at]!),
  });
  const choose = (group: SimilarGroup, kept: string | null | undefined) => {
    const next = new Map(choices.get());
    if (kept === undefined) next.delete(keyOf(group));
    else next.set(keyOf(group), kept);
    choices.set(next);
  };
  return (
    <ul
      ref={listRef}
      aria-label="Groups"
      className={styles.list}
      style={{ height: virtualizer.getTotalSize() }}
    >
      {virtualizer.getVirtualItems().map(({ key, index, start }) => (
        <li
          key={key}
          ref={virtualizer.measureElement}
          data-index={index}
          aria-setsize={groups.length}
          aria-posinset={index + 1}
          className={styles.item}
          style={{ transform: `translateY(${start - offset}px)` }}
        >
          <GroupCard
            collection={collection}
            group={groups[index]!}
            number={index + 1}
            kept={keptOf(groups[index]!)}
            onKeep={(kept) => choose(groups[index]!, kept)}
          />
        </li>
      ))}
    </ul>
  );
}

function keyOf({ members }: SimilarGroup): string {
  return members[0]!.id;
}
