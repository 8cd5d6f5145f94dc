// Matches as cards, with picture, text and metadata.

import type { CollectionRecord } from '@sagitta/client';
import { Link } from 'wouter';
import { resolvePath } from '../../../../../src/common/metadata-path.js';
import { classNames } from '../../ui/class-names.js';
import { formatScore } from '../../ui/format.js';
import { queryPath } from '../routes.js';
import { formatValue, previewText, previewTitle } from '../vectors/preview.js';
import { VectorPreview } from '../vectors/vector-preview.js';
import styles from './query.module.css';
import type { ResultMatch } from './use-matches.js';

interface ResultCardsProps {
  readonly collection: CollectionRecord;
  readonly matches: readonly ResultMatch[];
  /** The metadata path that names the vectors. */
  readonly titlePath: string | undefined;
  /** The metadata paths to show below the preview. */
  readonly paths: readonly string[];
  readonly openId: string | undefined;
  readonly onOpen: (id: string) => void;
}

export function ResultCards(props: ResultCardsProps) {
  const { collection, matches, titlePath, paths, openId, onOpen } = props;
  return (
    <ol className={styles.cards} aria-label="Matches, best first">
      {matches.map((match, i) => (
        <li key={match.id} className={classNames(styles.card, match.id === openId && styles.open)}>
          <p className={styles.cardHeader}>
            <span className={styles.rank}>{i + 1}</span>
            <bdi className={styles.cardId} title={match.id}>
              {match.id}
            </bdi>
            <span className={styles.score}>{formatScore(match.score)}</span>
          </p>
          <VectorPreview
            collection={collection}
            vector={match}
            hasId={false}
            titlePath={titlePath}
          />
          <CardMetadata collection={collection} match={match} titlePath={titlePath} paths={paths} />
          <p className={styles.cardActions}>
            <button type="button" className={styles.textButton} onClick={() => onOpen(match.id)}>
              Details<span className="visually-hidden"> of {match.id}</span>
            </button>
            <Link href={queryPath(collection, { id: match.id })} className={styles.textButton}>
              Find similar<span className="visually-hidden"> to {match.id}</span>
            </Link>
          </p>
        </li>
      ))}
    </ol>
  );
}

const VALUE_CHARACTERS_MAX = 120;

interface CardMetadataProps {
  readonly collection: CollectionRecord;
  readonly match: ResultMatch;
  readonly titlePath: string | undefined;
  readonly paths: readonly string[];
}

/** Metadata that the preview does not already show. */
function CardMetadata({ collection, match: { metadata }, titlePath, paths }: CardMetadataProps) {
  if (metadata === undefined) return null;
  const previewed = [previewTitle(metadata, titlePath), previewText(metadata, collection) ?? ''];
  const shown = paths
    .map((path) => ({ path, text: formatValue(resolvePath(metadata, path)) }))
    .filter(({ text }) => text !== '' && text.length <= VALUE_CHARACTERS_MAX)
    .filter(({ text }) => text !== previewed[0] && !previewed[1]!.includes(text));
  return (
    <dl className={styles.cardMetadata}>
      {shown.map(({ path, text }) => (
        <div key={path}>
          <dt>
            <bdi>{path}</bdi>
          </dt>
          <dd dir="auto">{text}</dd>
        </div>
      ))}
    </dl>
  );
}
