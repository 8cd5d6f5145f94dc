// One group of duplicates: its members and the metadata in which they differ.

import type { CollectionRecord } from '@sagitta/client';
import { EqualNot } from 'lucide-react';
import { useId, useState } from 'react';
import { useApi } from '../../api/queries.js';
import { Button } from '../../ui/button.js';
import { Checkbox } from '../../ui/field.js';
import { formatCount, formatScore, formatScoreInColumn } from '../../ui/format.js';
import { ErrorMessage } from '../../ui/states.js';
import { findPictureUrl, pictureShape, type ShownVector } from '../vectors/preview.js';
import { VectorPicture } from '../vectors/vector-preview.js';
import { type ComparedPath, compareMetadata } from './compare-metadata.js';
import styles from './group-card.module.css';
import type { GroupMember, SimilarGroup } from './similar-pairs.js';

interface GroupCardProps {
  readonly collection: CollectionRecord;
  readonly group: SimilarGroup;
  /** The number of the group in the list, from 1. */
  readonly number: number;
  /** The id of the member to keep; null to keep all, undefined while the rule is waiting for metadata. */
  readonly kept: string | null | undefined;
  readonly onKeep: (kept: string | null | undefined) => void;
}

/** Few groups have more members; they are shown on request. */
const MEMBERS_SHOWN = 12;

const NO_VECTORS: ReadonlyMap<string, ShownVector> = new Map();

export function GroupCard({ collection, group, number, kept, onKeep }: GroupCardProps) {
  const [shownCount, setShownCount] = useState(MEMBERS_SHOWN);
  const headingId = useId();
  const shown = group.members.slice(0, shownCount);
  const ids = shown.map(({ id }) => id);
  const { data, error, refetch } = useApi(
    ['collection', collection.id, 'members', ids],
    async (client, signal) => {
      const include = { include_values: pictureShape(collection) !== undefined };
      const reply = await client.collection(collection.id).fetch(ids, include, { signal });
      return new Map(reply.vectors.map((vector) => [vector.id, vector]));
    },
    { staleTime: 60_000, placeholderData: (before) => before },
  );
  const hiddenCount = group.members.length - shown.length;
  return (
    <article className={styles.card} aria-labelledby={headingId}>
      <header className={styles.header}>
        <h3 id={headingId}>
          Group {formatCount(number)}{' '}
          <span className={styles.note}>
            {formatCount(group.members.length)} vectors, {scoreRange(group.members)}
          </span>
        </h3>
        <Checkbox
          label="Keep all"
          isChecked={kept === null}
          onChange={(isAll) => onKeep(isAll ? null : undefined)}
        />
      </header>
      {error !== null && <ErrorMessage error={error} onRetry={refetch} />}
      <MemberTable
        collection={collection}
        members={shown}
        vectors={data ?? NO_VECTORS}
        label={`Members of group ${number}`}
        kept={kept}
        onKeep={onKeep}
      />
      {hiddenCount > 0 && (
        <Button kind="quiet" onClick={() => setShownCount(shownCount + 50)}>
          Show {formatCount(Math.min(50, hiddenCount))} more of {formatCount(hiddenCount)}
        </Button>
      )}
    </article>
  );
}

function scoreRange(members: readonly GroupMember[]): string {
  const scores = members.map(({ score }) => score);
  const least = formatScore(scores.reduce((a, b) => Math.min(a, b)));
  const greatest = formatScore(scores.reduce((a, b) => Math.max(a, b)));
  return least === greatest ? `score ${least}` : `scores ${least} to ${greatest}`;
}

interface MemberTableProps {
  readonly collection: CollectionRecord;
  readonly members: readonly GroupMember[];
  /** By id; empty until the vectors have arrived. */
  readonly vectors: ReadonlyMap<string, ShownVector>;
  readonly label: string;
  readonly kept: string | null | undefined;
  readonly onKeep: (id: string) => void;
}

function MemberTable({ collection, members, vectors, label, kept, onKeep }: MemberTableProps) {
  const name = useId();
  const compared =
    vectors.size === 0
      ? []
      : compareMetadata(members.map(({ id }) => vectors.get(id)?.metadata ?? {}));
  const hasPictures = hasPicture(collection, vectors);
  const different = compared.filter(({ isDifferent }) => isDifferent);
  const equal = compared.filter(({ isDifferent }) => !isDifferent);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard */}
      <section className={styles.scroll} aria-label={label} tabIndex={0}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">Keep</th>
              <th scope="col">Id</th>
              {hasPictures && <th scope="col">Picture</th>}
              <th scope="col" className={styles.numeric}>
                Nearest
              </th>
              {different.map(({ path }) => (
                <th key={path} scope="col">
                  <EqualNot size={13} className={styles.differs} aria-label="Differs:" />{' '}
                  <bdi>{path}</bdi>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {members.map(({ id, score }, row) => (
              <tr key={id} data-kept={kept === null || kept === id}>
                <td>
                  <input
                    type="radio"
                    className={styles.radio}
                    name={name}
                    aria-label={`Keep ${id}`}
                    checked={kept === id}
                    onChange={() => onKeep(id)}
                  />
                </td>
                <th scope="row">
                  <span className={styles.id} title={id} dir="auto">
                    {id}
                  </span>
                </th>
                {hasPictures && (
                  <td>
                    <VectorPicture collection={collection} vector={vectors.get(id) ?? { id }} />
                  </td>
                )}
                <td className={styles.numeric}>{formatScoreInColumn(score)}</td>
                {different.map(({ path, values }) => (
                  <td key={path}>
                    <Value text={values[row]} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <EqualPaths compared={equal} />
    </>
  );
}

function hasPicture(
  collection: CollectionRecord,
  vectors: ReadonlyMap<string, ShownVector>,
): boolean {
  if (pictureShape(collection) !== undefined) return true;
  return [...vectors.values()].some(
    ({ metadata }) => findPictureUrl(metadata, location.origin) !== undefined,
  );
}

function Value({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return <span className={styles.absent}>absent</span>;
  return (
    <span className={styles.value} title={text} dir="auto">
      {text}
    </span>
  );
}

/** The paths that all members share; closed at first, since they do not help to tell the members apart. */
function EqualPaths({ compared }: { readonly compared: readonly ComparedPath[] }) {
  if (compared.length === 0) return null;
  return (
    <details className={styles.equal}>
      <summary>
        {formatCount(compared.length)} equal {compared.length === 1 ? 'field' : 'fields'}
      </summary>
      <dl>
        {compared.map(({ path, values }) => (
          <div key={path}>
            <dt>
              <bdi>{path}</bdi>
            </dt>
            <dd dir="auto">{values[0]}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
