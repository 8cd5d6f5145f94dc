// The values of all vectors of a record: unnamed, named and sparse, each with a few figures.

import type { JsonObject, StoredVector } from '@sagitta/client';
import { CopyButton } from '../../ui/copy-button.js';
import { formatCount, formatScore } from '../../ui/format.js';
import { summarizeValues } from './values-shape.js';
import { ValuesStrip } from './values-strip.js';
import styles from './vector-details.module.css';

type Values = Float32Array;

export function ValuesPanel({ vector }: { readonly vector: StoredVector<JsonObject, Values> }) {
  const { values, vectors = {}, sparse_vectors: sparse = {} } = vector;
  const isEmpty =
    values === undefined && Object.keys(vectors).length + Object.keys(sparse).length === 0;
  return (
    <div className={styles.values}>
      {isEmpty && <p className={styles.note}>No values.</p>}
      {values !== undefined && <Dense name="values" values={values} />}
      {Object.entries(vectors).map(([name, one]) =>
        isMulti(one) ? (
          <Multi key={name} name={name} vectors={one} />
        ) : (
          <Dense key={name} name={name} values={one} />
        ),
      )}
      {Object.entries(sparse).map(([name, one]) => (
        <div key={name} className={styles.dense}>
          <Heading
            name={name}
            note={`sparse, ${formatCount(one.indices.length)} elements`}
            copied={() => JSON.stringify(one)}
          />
          <ValuesStrip values={one.values} />
          <Numbers
            text={one.indices.map((index, i) => `${index}: ${formatScore(one.values[i]!)}`)}
          />
        </div>
      ))}
    </div>
  );
}

interface DenseProps {
  readonly name: string;
  readonly values: Values;
}

function Dense({ name, values }: DenseProps) {
  const { min, max, mean, norm, zeroCount } = summarizeValues(values);
  return (
    <div className={styles.dense}>
      <Heading
        name={name}
        note={`${formatCount(values.length)} dimensions`}
        copied={() => JSON.stringify(Array.from(values))}
      />
      <ValuesStrip values={values} />
      <dl className={styles.figures}>
        {Object.entries({ min, max, mean, length: norm }).map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{Number(value.toPrecision(4))}</dd>
          </div>
        ))}
        <div>
          <dt>zeros</dt>
          <dd>{formatCount(zeroCount)}</dd>
        </div>
      </dl>
      <Numbers text={Array.from(values, formatScore)} />
    </div>
  );
}

function Multi({ name, vectors }: { readonly name: string; readonly vectors: readonly Values[] }) {
  return (
    <div className={styles.dense}>
      <Heading
        name={name}
        note={`${formatCount(vectors.length)} vectors of ${vectors[0]?.length ?? 0} dimensions`}
        copied={() => JSON.stringify(vectors.map((one) => Array.from(one)))}
      />
      {vectors.slice(0, 8).map((one, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the vectors of a list have no other identity
        <ValuesStrip key={i} values={one} />
      ))}
    </div>
  );
}

interface HeadingProps {
  readonly name: string;
  readonly note: string;
  readonly copied: () => string;
}

function Heading({ name, note, copied }: HeadingProps) {
  return (
    <div className={styles.denseHeading}>
      <h3>
        <bdi>{name}</bdi> <span className={styles.note}>{note}</span>
      </h3>
      <CopyButton text={copied} label={`Copy ${name} as JSON`} />
    </div>
  );
}

function Numbers({ text }: { readonly text: readonly string[] }) {
  return (
    <details className={styles.numbers}>
      <summary>All numbers</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard */}
      <p tabIndex={0}>{text.join('  ')}</p>
    </details>
  );
}

function isMulti(one: Values | readonly Values[]): one is readonly Values[] {
  return Array.isArray(one);
}
