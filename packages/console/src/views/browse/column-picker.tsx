// Chooses the columns of the table.

import { Popover, PopoverDisclosure, PopoverProvider } from '@ariakit/react';
import type { FoundPath } from '@sagitta/client';
import { ChevronDown, Columns3 } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../../ui/button.js';
import { Checkbox, TextBox } from '../../ui/field.js';
import { formatCount } from '../../ui/format.js';
import { typesAt } from '../filter/filter-operators.js';
import styles from './browse.module.css';
import { PICTURE_KEY, VALUES_KEY } from './browse-state.js';

interface ColumnPickerProps {
  readonly paths: readonly FoundPath[];
  readonly columns: readonly string[];
  readonly onChange: (columns: readonly string[] | undefined) => void;
}

export function ColumnPicker(props: ColumnPickerProps) {
  return (
    <PopoverProvider placement="bottom-start">
      <PopoverDisclosure render={<Button icon={Columns3} />}>
        Columns
        <ChevronDown size={14} aria-hidden />
      </PopoverDisclosure>
      <Popover unmountOnHide gutter={4} aria-label="Columns of the table" className={styles.picker}>
        <Choices {...props} />
      </Popover>
    </PopoverProvider>
  );
}

function Choices({ paths, columns, onChange }: ColumnPickerProps) {
  const [text, setText] = useState('');
  const choices = [
    { key: PICTURE_KEY, label: 'picture', note: '' },
    { key: VALUES_KEY, label: 'values', note: '' },
    ...paths.map((found) => ({
      key: found.path,
      label: found.path,
      note: `${typesAt(found)[0] ?? ''} · ${formatCount(found.count)}`,
    })),
  ].filter(({ label }) => label.toLowerCase().includes(text.toLowerCase()));
  return (
    <>
      <TextBox
        aria-label="Find a column"
        placeholder="Find a column"
        value={text}
        onChange={setText}
      />
      <ul className={styles.choices}>
        {choices.map(({ key, label, note }) => (
          <li key={key} className={styles.choice}>
            <Checkbox
              label={<bdi>{label}</bdi>}
              isChecked={columns.includes(key)}
              onChange={(isChecked) =>
                onChange(isChecked ? [...columns, key] : columns.filter((column) => column !== key))
              }
            />
            <span className={styles.note}>{note}</span>
          </li>
        ))}
        {choices.length === 0 && <li className={styles.note}>No path contains “{text}”.</li>}
      </ul>
      <Button kind="quiet" onClick={() => onChange(undefined)}>
        Use the default columns
      </Button>
    </>
  );
}
