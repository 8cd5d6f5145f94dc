// The card of a point: its id, the value that colours it, its picture or text, and some metadata.

import type { CollectionRecord } from '@sagitta/client';
import type { Json } from '../../../../../src/common/types.js';
import { useApi } from '../../api/queries.js';
import { useShownTheme } from '../../ui/theme.js';
import { useDebounced } from '../../ui/use-debounced.js';
import { formatValue, pictureShape, previewTitle } from '../vectors/preview.js';
import { VectorPreview } from '../vectors/vector-preview.js';
import styles from './map.module.css';
import { entryColour } from './palette.js';

interface HoverCardProps {
  readonly collection: CollectionRecord;
  readonly id: string;
  readonly colourPath: string;
  /** The value at `colourPath` and its palette entry; undefined if the path is empty. */
  readonly value: Json | undefined;
  readonly entry: number | undefined;
  readonly neighborCount: number;
}

const FIELDS_SHOWN = 5;
/** Delays the request, so that a pointer that passes over points sends none. */
const HOVER_DELAY_MS = 60;

export function HoverCard(props: HoverCardProps) {
  const { collection, id, colourPath, value, entry, neighborCount } = props;
  const theme = useShownTheme();
  const rested = useDebounced(id, HOVER_DELAY_MS);
  const { data: found } = useApi(
    ['collection', collection.id, 'hovered', rested],
    async (client, signal) => {
      const include = { include_values: pictureShape(collection) !== undefined };
      const reply = await client.collection(collection.id).fetch([rested], include, { signal });
      return reply.vectors[0];
    },
    { staleTime: 60_000 },
  );
  const data = found?.id === id ? found : undefined;
  const fields = Object.entries(data?.metadata ?? {})
    .filter(([path]) => path !== colourPath)
    .slice(0, FIELDS_SHOWN);
  return (
    <>
      {entry !== undefined && (
        <p className={styles.cardValue}>
          <span className={styles.swatch} style={{ background: entryColour(theme, entry) }} />
          <span className={styles.note}>{colourPath}</span>{' '}
          <strong dir="auto">{value === undefined ? 'none' : formatValue(value)}</strong>
        </p>
      )}
      <VectorPreview collection={collection} vector={data ?? { id }} />
      <dl className={styles.fields}>
        {previewTitle(data?.metadata) !== undefined && (
          <div>
            <dt>id</dt>
            <dd>
              <bdi>{id}</bdi>
            </dd>
          </div>
        )}
        {fields.map(([path, found]) => (
          <div key={path}>
            <dt>
              <bdi>{path}</bdi>
            </dt>
            <dd dir="auto">{formatValue(found)}</dd>
          </div>
        ))}
      </dl>
      {neighborCount > 0 && (
        <p className={styles.note}>Lines lead to its nearest neighbours on the map.</p>
      )}
    </>
  );
}
