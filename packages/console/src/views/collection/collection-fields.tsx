// Form fields for the settings of a collection, which the dialogs that create and edit one share.

import { type ReactNode, useState } from 'react';
import { ELEMENT_TYPES, type ElementType } from '../../../../../src/common/elements.js';
import { TEXT_LANGUAGES } from '../../../../../src/common/text-settings.js';
import {
  BIT_METRICS,
  DECLARED_TYPES,
  type Metric,
  VALUE_METRICS,
} from '../../../../../src/common/types.js';
import { Checkbox, optionsOf, Select, SelectField, TextBox, TextField } from '../../ui/field.js';
import { RowList } from '../../ui/row-list.js';
import { KIND_LABELS } from '../vector-fields.js';
import {
  EMPTY_VECTOR,
  type EmbedDraft,
  type TextDraft,
  type TypeRow,
  type VectorDraft,
  withElementType,
} from './collection-draft.js';
import styles from './collection-fields.module.css';

interface FieldProps<Value> {
  readonly value: Value;
  readonly error: string | undefined;
  readonly onChange: (value: Value) => void;
}

const EMBED_LABELS = {
  none: 'None',
  builtin: 'Built-in English model (512 dimensions)',
  endpoint: 'Endpoint…',
} as const;

/** Chooses the model that turns texts into vectors. */
export function EmbedField({ value, error, onChange }: FieldProps<EmbedDraft>) {
  return (
    <div className={styles.embed}>
      <SelectField
        label="Text embedding"
        hint={
          value.kind === 'endpoint'
            ? 'An endpoint that the configuration of the server names.'
            : 'A model lets requests contain texts instead of vectors. Can be changed later.'
        }
        options={optionsOf(EMBED_LABELS)}
        value={value.kind}
        onChange={(kind) => onChange({ ...value, kind, rest: {} })}
      />
      {value.kind === 'endpoint' && (
        <div className={styles.pair}>
          <TextField
            label="Endpoint"
            error={error}
            value={value.endpoint}
            onChange={(endpoint) => onChange({ ...value, endpoint })}
          />
          <TextField
            label="Model"
            value={value.model}
            onChange={(model) => onChange({ ...value, model })}
          />
        </div>
      )}
    </div>
  );
}

interface ShapeFieldsProps {
  readonly shape: Pick<VectorDraft, 'dimension' | 'metric' | 'elementType'>;
  readonly error?: string | undefined;
  readonly onChange: (part: Partial<ShapeFieldsProps['shape']>) => void;
}

export function ShapeFields({ shape, error, onChange }: ShapeFieldsProps) {
  const { dimension, metric, elementType } = shape;
  const metrics: readonly Metric[] = elementType === 'bit' ? [...BIT_METRICS] : VALUE_METRICS;
  return (
    <div className={styles.pair}>
      <TextField
        label="Dimension"
        error={error}
        inputMode="numeric"
        value={dimension}
        onChange={(text) => onChange({ dimension: text })}
      />
      <SelectField
        label="Metric"
        options={metrics.map((value) => ({ value, label: value }))}
        value={metric}
        onChange={(value) => onChange({ metric: value })}
      />
      <SelectField<ElementType>
        label="Element type"
        options={ELEMENT_TYPES.map((value) => ({ value, label: value }))}
        value={elementType}
        onChange={(value) => onChange(withElementType(value, metric))}
      />
    </div>
  );
}

const LANGUAGES = [
  { value: '', label: 'words unchanged' },
  ...TEXT_LANGUAGES.map((value) => ({ value: value as string, label: value })),
];

export function TextFields({ value, error, onChange }: FieldProps<TextDraft>) {
  return (
    <>
      <Checkbox
        label="Search the text of metadata by words"
        isChecked={value.isOn}
        onChange={(isOn) => onChange({ ...value, isOn })}
      />
      {value.isOn && (
        <>
          <RowList
            label="Metadata paths with text"
            what="path"
            rows={value.fields}
            empty=""
            error={error}
            onChange={(fields) => onChange({ ...value, fields })}
          >
            {(field, change, number) => (
              <TextBox
                aria-label={`Path ${number}`}
                placeholder="title"
                value={field}
                onChange={change}
              />
            )}
          </RowList>
          <SelectField
            label="Language"
            hint="With a language, “searching” also finds “searched”."
            options={LANGUAGES}
            value={value.language}
            onChange={(language) => onChange({ ...value, language })}
          />
        </>
      )}
    </>
  );
}

export function VectorRows({ value, error, onChange }: FieldProps<readonly VectorDraft[]>) {
  return (
    <RowList
      label="Named vectors"
      hint="Beside or instead of the vector without a name. What a vector is cannot be changed later."
      what="vector"
      rows={value}
      empty={EMPTY_VECTOR}
      error={error}
      onChange={onChange}
    >
      {(row, change, number) => (
        <fieldset className={styles.vector} aria-label={`Vector ${number}`}>
          <VectorFields draft={row} onChange={change} />
        </fieldset>
      )}
    </RowList>
  );
}

interface VectorFieldsProps {
  readonly draft: VectorDraft;
  readonly nameHint?: string;
  readonly onChange: (draft: VectorDraft) => void;
}

export function VectorFields({ draft, nameHint, onChange }: VectorFieldsProps) {
  return (
    <>
      <div className={styles.pair}>
        <TextField
          label="Name"
          hint={nameHint}
          value={draft.name}
          onChange={(name) => onChange({ ...draft, name })}
        />
        <SelectField
          label="Kind"
          options={optionsOf(KIND_LABELS)}
          value={draft.kind}
          onChange={(kind) => onChange({ ...draft, kind })}
        />
      </div>
      {draft.kind !== 'sparse' && (
        <ShapeFields shape={draft} onChange={(part) => onChange({ ...draft, ...part })} />
      )}
    </>
  );
}

const EMPTY_TYPE: TypeRow = { path: '', type: 'string' };

export function TypeRows({ value, error, onChange }: FieldProps<readonly TypeRow[]>) {
  return (
    <RowList
      label="Types by metadata path"
      hint="Writes whose metadata does not fit are refused. Paths without a type may have any."
      what="type"
      rows={value}
      empty={EMPTY_TYPE}
      error={error}
      onChange={onChange}
    >
      {(row, change, number) => (
        <div className={styles.type}>
          <TextBox
            aria-label={`Path of type ${number}`}
            placeholder="year"
            value={row.path}
            onChange={(path) => change({ ...row, path })}
          />
          <Select
            aria-label={`Type ${number}`}
            options={DECLARED_TYPES.map((type) => ({ value: type, label: type }))}
            value={row.type}
            onChange={(type) => change({ ...row, type })}
          />
        </div>
      )}
    </RowList>
  );
}

export function ExpiryField({ value, error, onChange }: FieldProps<string>) {
  return (
    <TextField
      label="Vectors expire after (seconds)"
      hint="Leave empty for no default expiry. A change applies to later writes."
      error={error}
      inputMode="numeric"
      value={value}
      onChange={onChange}
    />
  );
}

export function NodesField({ value, error, onChange }: FieldProps<string>) {
  return (
    <TextField
      label="Nodes of a cluster that hold it"
      hint="Leave empty for all nodes. It has no effect outside a cluster."
      error={error}
      inputMode="numeric"
      value={value}
      onChange={onChange}
    />
  );
}

interface SectionProps {
  readonly title: string;
  /** Whether the settings can be changed later. */
  readonly note: string;
  /** Whether it is open at first. */
  readonly isOpen: boolean;
  readonly error?: string | undefined;
  readonly children: ReactNode;
}

/** A part of a long form, which opens by itself if it has an error. */
export function Section({ title, note, isOpen, error, children }: SectionProps) {
  const [isShown, setShown] = useState(isOpen);
  return (
    <details
      className={styles.section}
      open={isShown || error !== undefined}
      onToggle={(event) => setShown(event.currentTarget.open)}
    >
      <summary>
        {title}
        <span className={styles.summaryNote}>{note}</span>
      </summary>
      <div className={styles.stack}>{children}</div>
    </details>
  );
}
