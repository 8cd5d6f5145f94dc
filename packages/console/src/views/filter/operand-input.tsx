// The control for an operand. Invalid input stays in the control.

import type { CollectionRecord, FoundPath, JsonObject } from '@sagitta/client';
import { X } from 'lucide-react';
import { useState } from 'react';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { Select, TextAreaField, TextField } from '../../ui/field.js';
import { SuggestInput } from '../../ui/suggest-input.js';
import styles from './filter-editor.module.css';
import type { FilterCondition } from './filter-model.js';
import { hasOnlyStrings, operatorOf, VALUE_TYPES } from './filter-operators.js';
import {
  dateProblem,
  formatScalar,
  parseCount,
  parseObject,
  parseScalar,
} from './filter-values.js';
import { useValueSuggestions } from './use-suggestions.js';

type Operand = FilterCondition['operand'];

interface OperandInputProps {
  readonly collection: CollectionRecord;
  readonly condition: FilterCondition;
  readonly found: FoundPath | undefined;
  readonly onChange: (operand: Operand) => void;
}

export function OperandInput(props: OperandInputProps) {
  const { condition, onChange } = props;
  const label = `Value for ${condition.path || 'the condition'}`;
  switch (operatorOf(condition.operator).kind) {
    case 'fixed':
      return null;
    case 'scalar':
    case 'string':
      return <ScalarInput {...props} label={label} />;
    case 'list':
      return <ListInput {...props} label={label} />;
    case 'type':
      return (
        <Select
          aria-label={label}
          value={typeof condition.operand === 'string' ? condition.operand : ''}
          options={[
            { value: '', label: 'Choose a type' },
            ...VALUE_TYPES.map((value) => ({ value, label: value })),
          ]}
          onChange={(type) => onChange(type === '' ? undefined : type)}
        />
      );
    case 'date':
      return (
        <CheckedInput
          {...props}
          label={label}
          placeholder="2026-01-31"
          parse={(text) => (dateProblem(text) === undefined && text !== '' ? text : undefined)}
          problemOf={dateProblem}
        />
      );
    case 'count':
      return (
        <CheckedInput
          {...props}
          label={label}
          placeholder="2"
          parse={parseCount}
          problemOf={(text) =>
            text === '' || parseCount(text) !== undefined ? undefined : 'Expected a whole number.'
          }
        />
      );
    case 'json':
      return <JsonInput {...props} label={label} />;
  }
}

interface LabelledProps extends OperandInputProps {
  readonly label: string;
}

/** The text of the control: the user's input while it stands for the operand, otherwise the formatted operand. */
function useDraft(
  operand: Operand,
  parse: (text: string) => Operand,
  format: (operand: Operand) => string,
): [string, (text: string) => void] {
  const [draft, setDraft] = useState('');
  const isCurrent = stringifyExactJson(parse(draft)) === stringifyExactJson(operand);
  return [isCurrent ? draft : format(operand), setDraft];
}

function ScalarInput({ collection, condition, found, label, onChange }: LabelledProps) {
  const { path, operator, operand } = condition;
  const [isActive, setActive] = useState(false);
  const onlyStrings = operatorOf(operator).kind === 'string' || hasOnlyStrings(path, found);
  const parse = (text: string) => parseScalar(text, onlyStrings);
  const [text, setDraft] = useDraft(operand, parse, (value) => formatScalar(value, onlyStrings));
  const suggestions = useValueSuggestions(collection, path, found, { typed: text, isActive });
  return (
    <SuggestInput
      label={label}
      placeholder="value"
      value={text}
      suggestions={suggestions}
      onFocusChange={setActive}
      onChange={(typed) => {
        setDraft(typed);
        onChange(parse(typed));
      }}
    />
  );
}

function ListInput({ collection, condition, found, label, onChange }: LabelledProps) {
  const [typed, setTyped] = useState('');
  const [isActive, setActive] = useState(false);
  const onlyStrings = hasOnlyStrings(condition.path, found);
  const values = Array.isArray(condition.operand) ? condition.operand : [];
  const shown = values.map((value) => formatScalar(value, onlyStrings));
  const suggestions = useValueSuggestions(collection, condition.path, found, { typed, isActive });
  const change = (next: typeof values) => onChange(next.length === 0 ? undefined : next);
  const add = (text: string) => {
    const value = parseScalar(text, onlyStrings);
    setTyped('');
    if (value !== undefined && !values.includes(value)) change([...values, value]);
  };
  return (
    <div className={styles.list}>
      {values.map((value, i) => (
        <button
          key={shown[i]}
          type="button"
          className={styles.chip}
          aria-label={`Remove ${shown[i]}`}
          onClick={() => change(values.filter((other) => other !== value))}
        >
          <span dir="auto">{shown[i]}</span>
          <X size={13} aria-hidden />
        </button>
      ))}
      <SuggestInput
        label={`${label}: add one`}
        placeholder="add a value"
        className={styles.listInput}
        value={typed}
        suggestions={suggestions.filter(({ value }) => !shown.includes(value))}
        onFocusChange={(hasFocus) => {
          setActive(hasFocus);
          if (!hasFocus) add(typed);
        }}
        onChange={setTyped}
        onChoose={add}
        onKeyDown={(event) => {
          const isChoosing = event.currentTarget.getAttribute('aria-activedescendant') !== null;
          if (event.key === 'Enter' && typed !== '' && !isChoosing) add(typed);
          if (event.key === 'Backspace' && typed === '') change(values.slice(0, -1));
        }}
      />
    </div>
  );
}

interface CheckedInputProps extends LabelledProps {
  readonly placeholder: string;
  readonly parse: (text: string) => Operand;
  readonly problemOf: (text: string) => string | undefined;
}

/** A text input with validation. */
function CheckedInput({
  condition,
  label,
  placeholder,
  parse,
  problemOf,
  onChange,
}: CheckedInputProps) {
  const [text, setDraft] = useDraft(condition.operand, parse, (operand) => String(operand ?? ''));
  const problem = problemOf(text);
  return (
    <TextField
      label={label}
      isLabelHidden
      error={problem}
      placeholder={placeholder}
      value={text}
      onChange={(typed) => {
        setDraft(typed);
        onChange(parse(typed));
      }}
    />
  );
}

function JsonInput({ condition, label, onChange }: LabelledProps) {
  const example = operatorOf(condition.operator).operand as JsonObject;
  return (
    <ObjectInput
      label={label}
      value={condition.operand as JsonObject | undefined}
      placeholder={JSON.stringify(example)}
      onChange={onChange}
    />
  );
}

/** Longer texts scroll. */
const ROWS_MAX = 12;

interface ObjectInputProps {
  readonly label: string;
  readonly value: JsonObject | undefined;
  readonly placeholder?: string;
  /** The minimum number of lines. */
  readonly rows?: number;
  readonly onChange: (value: JsonObject | undefined) => void;
}

/** A JSON object as text. Invalid text stays in the input and changes nothing. */
export function ObjectInput({ label, value, placeholder, rows = 2, onChange }: ObjectInputProps) {
  const [draft, setDraft] = useState<string>();
  const formatted = value === undefined ? '' : stringifyExactJson(value, undefined, 2);
  const text = draft ?? formatted;
  // Reserves room for the formatted text during typing. Otherwise the click that ends the typing would resize
  // the input and miss its target.
  const lineCount = Math.max(...[text, formatted].map((shown) => shown.split('\n').length));
  const { problem } = text.trim() === '' ? {} : parseObject(text);
  return (
    <TextAreaField
      label={label}
      isLabelHidden
      error={problem}
      placeholder={placeholder}
      rows={Math.min(ROWS_MAX, Math.max(rows, lineCount))}
      className={styles.json}
      value={text}
      onBlur={() => problem === undefined && setDraft(undefined)}
      onChange={(typed) => {
        setDraft(typed);
        if (typed.trim() === '') onChange(undefined);
        const { object } = parseObject(typed);
        if (object !== undefined) onChange(object);
      }}
    />
  );
}
