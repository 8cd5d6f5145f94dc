// A text input with optional suggestions.

import { Combobox, ComboboxItem, ComboboxPopover, ComboboxProvider } from '@ariakit/react';
import { type ClipboardEvent, type KeyboardEvent, type Ref, useState } from 'react';
import { classNames } from './class-names.js';
import fieldStyles from './field.module.css';
import styles from './suggest-input.module.css';

export interface Suggestion {
  readonly value: string;
  /** Shown beside the value, such as a type or a count. */
  readonly note?: string | undefined;
  /** Shown before the value, which is then secondary. */
  readonly title?: string | undefined;
  /** A second line. */
  readonly detail?: string | undefined;
}

interface SuggestInputProps {
  readonly id?: string;
  readonly label?: string;
  readonly value: string;
  readonly suggestions: readonly Suggestion[];
  readonly placeholder?: string;
  readonly isInvalid?: boolean;
  readonly describedBy?: string | undefined;
  readonly className?: string | undefined;
  readonly onChange: (value: string) => void;
  /** Called when a suggestion is chosen; by default it becomes the value. */
  readonly onChoose?: (value: string) => void;
  readonly onFocusChange?: (hasFocus: boolean) => void;
  readonly onKeyDown?: (event: KeyboardEvent<HTMLInputElement>) => void;
  readonly onPaste?: (event: ClipboardEvent<HTMLInputElement>) => void;
  readonly inputRef?: Ref<HTMLInputElement>;
}

export function SuggestInput(props: SuggestInputProps) {
  const { label, value, suggestions, onChange, onChoose, onFocusChange } = props;
  const [isOpen, setOpen] = useState(false);
  return (
    <ComboboxProvider
      value={value}
      setValue={onChange}
      open={isOpen && suggestions.length > 0}
      setOpen={setOpen}
      placement="bottom-start"
    >
      <Combobox
        {...(props.id !== undefined && { id: props.id })}
        aria-label={label}
        aria-invalid={props.isInvalid || undefined}
        aria-describedby={props.describedBy}
        placeholder={props.placeholder}
        spellCheck={false}
        autoComplete="off"
        dir="auto"
        className={classNames(fieldStyles.control, props.className)}
        onFocus={() => onFocusChange?.(true)}
        onBlur={() => onFocusChange?.(false)}
        onKeyDown={(event) => {
          // Enter completes the input; suggestions that arrive later must not cover what follows.
          if (event.key === 'Enter') setOpen(false);
          props.onKeyDown?.(event);
        }}
        onPaste={props.onPaste}
        ref={props.inputRef}
      />
      <ComboboxPopover
        // A portal keeps the popover from being clipped; it must be inside a landmark.
        portal
        portalElement={() => document.getElementById('main')}
        preserveTabOrder={false}
        sameWidth
        gutter={4}
        className={styles.popover}
        unmountOnHide
      >
        {suggestions.map((suggestion) => (
          <ComboboxItem
            key={suggestion.value}
            value={suggestion.value}
            setValueOnClick={onChoose === undefined}
            className={styles.item}
            onClick={() => onChoose?.(suggestion.value)}
          >
            <SuggestionText {...suggestion} />
          </ComboboxItem>
        ))}
      </ComboboxPopover>
    </ComboboxProvider>
  );
}

function SuggestionText({ value, note, title, detail }: Suggestion) {
  const side = title === undefined || title === value ? note : value;
  return (
    <>
      <span className={styles.value} dir="auto">
        {title ?? value}
      </span>
      {side !== undefined && <span className={styles.note}>{side}</span>}
      {detail !== undefined && (
        <span className={styles.detail} dir="auto">
          {detail}
        </span>
      )}
    </>
  );
}
