// The metadata paths that the server finds in a collection, or in the vectors that pass a filter; a row
// opens to show its values.

import type { FoundPath, FoundSchema, JsonObject } from '@sagitta/client';
import { useState } from 'react';
import { readSchema, useApi } from '../../api/queries.js';
import { classNames } from '../../ui/class-names.js';
import tableStyles from '../../ui/data-table.module.css';
import { formatCount, formatNumber, pluralize } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { Empty, ErrorMessage, Loading } from '../../ui/states.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { FilterEditor } from '../filter/filter-editor.js';
import { declaredOnly, formatShare, typeSharesOf } from './found-types.js';
import { PathDetails } from './path-details.js';
import styles from './schema.module.css';

export function MetadataPanel({ collection }: CollectionViewProps) {
  const [filter, setFilter] = useState<JsonObject>();
  const { data, error, isFetching, refetch } = useFoundSchema(collection.id, filter);
  return (
    <Panel
      title="Metadata"
      actions={
        <span className={styles.summary} role="status">
          {data === undefined || isFetching
            ? ''
            : `${pluralize(data.paths.length, 'path')} in ${pluralize(data.count, 'vector')}`}
        </span>
      }
    >
      <FilterEditor collection={collection} value={filter} onChange={setFilter} draftKey="schema" />
      {error !== null && <ErrorMessage error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading label="Reading the metadata" />}
      {data !== undefined && data.paths.length === 0 && (
        <Empty title="No vector has metadata">
          {filter !== undefined && (
            <p>No vector passes the filter, or those that do have no metadata.</p>
          )}
        </Empty>
      )}
      {data !== undefined && data.paths.length > 0 && (
        <PathTable collection={collection} found={data} filter={filter} />
      )}
      <DeclaredOnly
        collection={collection}
        found={data?.paths ?? []}
        isAll={filter === undefined}
      />
    </Panel>
  );
}

/** Keeps showing the previous paths until those of a new filter arrive. */
function useFoundSchema(id: string, filter: JsonObject | undefined) {
  return useApi(
    ['collection', id, 'schema', filter],
    (client, signal) => readSchema(client, id, filter, signal),
    { staleTime: 30_000, placeholderData: (before) => before },
  );
}

interface PathTableProps extends CollectionViewProps {
  readonly found: Pick<FoundSchema, 'paths' | 'count'>;
  readonly filter: JsonObject | undefined;
}

function PathTable({ collection, found, filter }: PathTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
    <section className={styles.scroll} aria-label="Metadata paths" tabIndex={0}>
      <table className={classNames(tableStyles.table, styles.paths)}>
        <thead>
          <tr>
            <th scope="col">Path</th>
            <th scope="col">Types</th>
            <th scope="col" className={tableStyles.number}>
              Coverage
            </th>
            <th scope="col" className={tableStyles.number}>
              Distinct values
            </th>
            <th scope="col" className={tableStyles.number}>
              Range
            </th>
          </tr>
        </thead>
        {found.paths.map((path) => (
          <PathRows
            key={path.path}
            collection={collection}
            path={path}
            count={found.count}
            filter={filter}
          />
        ))}
      </table>
    </section>
  );
}

interface PathRowsProps extends CollectionViewProps {
  readonly path: FoundPath;
  /** The number of vectors that pass the filter. */
  readonly count: number;
  readonly filter: JsonObject | undefined;
}

function PathRows({ collection, path, count, filter }: PathRowsProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <tbody>
      <tr>
        <th scope="row">
          <button
            type="button"
            className={styles.path}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            <span className={styles.arrow} aria-hidden />
            <span className={styles.pathText} title={path.path} dir="auto">
              {path.path}
            </span>
          </button>
        </th>
        <td>
          <Types path={path} declared={collection.schema?.[path.path]} />
        </td>
        <td className={tableStyles.number}>
          {formatCount(path.count)}{' '}
          <span className={styles.share}>{formatShare(path.count / Math.max(1, count))}</span>
        </td>
        <td className={tableStyles.number}>
          {path.is_distinct_exact ? '' : 'at least '}
          {formatCount(path.distinct_count)}
        </td>
        <td className={tableStyles.number}>
          {path.min !== undefined && path.max !== undefined
            ? `${formatNumber(path.min)} to ${formatNumber(path.max)}`
            : '–'}
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={5} className={styles.details}>
            <PathDetails collection={collection} path={path} filter={filter} />
          </td>
        </tr>
      )}
    </tbody>
  );
}

interface TypesProps {
  readonly path: FoundPath;
  readonly declared: string | undefined;
}

function Types({ path, declared }: TypesProps) {
  const shares = typeSharesOf(path);
  return (
    <span className={styles.types}>
      {shares.map(({ type, share }) => (
        <span key={type} className={styles.type}>
          {type}
          {shares.length > 1 && <span className={styles.share}> {formatShare(share)}</span>}
        </span>
      ))}
      {declared !== undefined && <span className={styles.declared}>declared {declared}</span>}
    </span>
  );
}

interface DeclaredOnlyProps extends CollectionViewProps {
  readonly found: readonly FoundPath[];
  /** Whether `found` covers all vectors. */
  readonly isAll: boolean;
}

function DeclaredOnly({ collection, found, isAll }: DeclaredOnlyProps) {
  const declared = collection.schema ?? {};
  const absent = isAll ? declaredOnly(declared, found) : [];
  if (absent.length === 0) return null;
  return (
    <p className={styles.summary}>
      Declared, but not found in any vector:{' '}
      {absent.map((path) => `${path} (${declared[path]})`).join(', ')}
    </p>
  );
}
