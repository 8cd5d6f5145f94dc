// Metadata as a tree: every member with its value; objects and arrays can be collapsed.

import { useState } from 'react';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { isJsonObject } from '../../../../../src/common/metadata-path.js';
import type { Json, JsonObject } from '../../../../../src/common/types.js';
import { Button } from '../../ui/button.js';
import { formatCount, pluralize } from '../../ui/format.js';
import styles from './metadata-tree.module.css';

/** The number of members shown initially. */
const SHOWN_MAX = 50;

export function MetadataTree({ metadata }: { readonly metadata: JsonObject }) {
  const entries = Object.entries(metadata);
  if (entries.length === 0) return <p className={styles.none}>No metadata.</p>;
  return <Members entries={entries} />;
}

function Members({ entries }: { readonly entries: readonly (readonly [string, Json])[] }) {
  const [isAll, setAll] = useState(false);
  const shown = isAll ? entries : entries.slice(0, SHOWN_MAX);
  return (
    <>
      <ul className={styles.members}>
        {shown.map(([name, value]) => (
          <li key={name}>
            <Member name={name} value={value} />
          </li>
        ))}
      </ul>
      {entries.length > shown.length && (
        <Button kind="quiet" onClick={() => setAll(true)}>
          Show {formatCount(entries.length - shown.length)} more
        </Button>
      )}
    </>
  );
}

function Member({ name, value }: { readonly name: string; readonly value: Json }) {
  const isArray = Array.isArray(value);
  const isNested = isJsonObject(value) || (isArray && value.some(isCompound));
  if (!isNested) {
    return (
      <div className={styles.member}>
        <bdi className={styles.name}>{name}</bdi>
        <Leaf value={value} />
      </div>
    );
  }
  const entries = Object.entries(value);
  return (
    <details open className={styles.nested}>
      <summary>
        <bdi className={styles.name}>{name}</bdi>{' '}
        <span className={styles.type}>
          {pluralize(entries.length, isArray ? 'element' : 'member')}
        </span>
      </summary>
      <Members entries={entries} />
    </details>
  );
}

function Leaf({ value }: { readonly value: Json }) {
  if (typeof value === 'string') {
    return value === '' ? (
      <span className={styles.type}>empty text</span>
    ) : (
      <span className={styles.text} dir="auto">
        {value}
      </span>
    );
  }
  if (Array.isArray(value)) {
    return value.length === 0 ? (
      <span className={styles.type}>empty array</span>
    ) : (
      <span className={styles.elements}>
        {value.slice(0, SHOWN_MAX).map((element, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: elements have no other identity
          <bdi key={i} className={styles.element}>
            {typeof element === 'string' ? element : stringifyExactJson(element)}
          </bdi>
        ))}
        {value.length > SHOWN_MAX && (
          <span className={styles.type}>and {formatCount(value.length - SHOWN_MAX)} more</span>
        )}
      </span>
    );
  }
  return <code className={styles.scalar}>{stringifyExactJson(value)}</code>;
}

function isCompound(value: Json): boolean {
  return typeof value === 'object' && value !== null;
}
