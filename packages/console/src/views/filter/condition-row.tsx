// One condition of a filter: path, operator, operand, and the server's error.

import type { CollectionRecord } from '@sagitta/client';
import { CaseSensitive, Trash2 } from 'lucide-react';
import { TEXT_PATH } from '../../../../../src/common/filter-operators.js';
import { useFoundPaths } from '../../api/queries.js';
import { IconButton } from '../../ui/button.js';
import { Select } from '../../ui/field.js';
import { SuggestInput } from '../../ui/suggest-input.js';
import styles from './filter-editor.module.css';
import type { FilterCondition } from './filter-model.js';
import { type OperatorName, operatorOf, operatorsFor } from './filter-operators.js';
import { OperandInput } from './operand-input.js';
import { usePathSuggestions } from './use-suggestions.js';

interface ConditionRowProps {
  readonly collection: CollectionRecord;
  readonly condition: FilterCondition;
  readonly error: string | undefined;
  readonly onChange: (condition: FilterCondition) => void;
  readonly onRemove: () => void;
}

export function ConditionRow(props: ConditionRowProps) {
  const { collection, condition, error, onChange, onRemove } = props;
  const { path, operator } = condition;
  const { data: paths } = useFoundPaths(collection.id);
  const found = paths?.find((one) => one.path === path);
  const suggestions = usePathSuggestions(collection, path);
  const fitting = operatorsFor(path, found);
  const names = fitting.includes(operator) ? fitting : [operator, ...fitting];
  return (
    <div className={styles.condition}>
      <SuggestInput
        label="Metadata path"
        placeholder="path"
        value={path}
        suggestions={suggestions}
        onChange={(next) => onChange(atPath(condition, next))}
      />
      <Select
        aria-label={`Operator for ${path || 'the condition'}`}
        value={operator}
        options={names.map((value) => ({ value, label: operatorOf(value).label }))}
        onChange={(next) => onChange(withOperator(condition, next))}
      />
      <div className={styles.operand}>
        <OperandInput
          // Resets the control when the kind of operand changes.
          key={operatorOf(operator).kind}
          collection={collection}
          condition={condition}
          found={found}
          onChange={(operand) => onChange({ ...condition, operand })}
        />
      </div>
      <div className={styles.rowActions}>
        {operatorOf(operator).comparesStrings === true && (
          <IconButton
            icon={CaseSensitive}
            label={condition.ignoresCase ? 'Case-insensitive' : 'Case-sensitive'}
            aria-pressed={!condition.ignoresCase}
            className={styles.case}
            onClick={() => onChange({ ...condition, ignoresCase: !condition.ignoresCase })}
          />
        )}
        <IconButton icon={Trash2} label="Remove the condition" onClick={onRemove} />
      </div>
      {error !== undefined && (
        <p className={styles.problem} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

/** The text path and the operator `$match` belong together. */
function atPath(condition: FilterCondition, path: string): FilterCondition {
  const next = { ...condition, path };
  if (path === TEXT_PATH) return withOperator(next, '$match');
  return condition.path === TEXT_PATH ? withOperator(next, '$eq') : next;
}

/** Keeps the operand if the new operator takes the same kind, or converts it if possible. */
function withOperator(condition: FilterCondition, operator: OperatorName): FilterCondition {
  const { kind, operand: fixed, comparesStrings } = operatorOf(operator);
  const { operand } = condition;
  const ignoresCase = comparesStrings === true && condition.ignoresCase;
  return { ...condition, operator, ignoresCase, operand: convert() };

  function convert(): FilterCondition['operand'] {
    if (kind === 'fixed') return fixed as boolean | null;
    const before = operatorOf(condition.operator).kind;
    if (kind === before) return operand;
    if (kind === 'list' && before === 'scalar' && operand !== undefined) return [operand];
    if (kind === 'scalar' && before === 'list') return (operand as string[] | undefined)?.[0];
    if (kind === 'scalar' && before === 'string') return operand;
    return kind === 'string' && typeof operand === 'string' ? operand : undefined;
  }
}
