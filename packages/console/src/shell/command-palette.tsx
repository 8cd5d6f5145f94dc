// The command palette: opens any view of any collection by a part of its name.

import { Combobox, ComboboxItem, ComboboxList, ComboboxProvider, Dialog } from '@ariakit/react';
import { useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import { useCollections } from '../api/queries.js';
import { setTheme, type Theme } from '../ui/theme.js';
import { COLLECTION_VIEWS, collectionPath, SERVICE_VIEWS } from '../views/routes.js';
import styles from './command-palette.module.css';

interface PaletteCommand {
  readonly label: string;
  readonly run: () => void;
}

const SHOWN_MAX = 60;
const THEMES: readonly Theme[] = ['light', 'dark', 'system'];

interface CommandPaletteProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

export function CommandPalette({ isOpen, onClose }: CommandPaletteProps) {
  return (
    <Dialog
      open={isOpen}
      onClose={onClose}
      unmountOnHide
      aria-label="Command palette"
      className={styles.dialog}
      backdrop={<div className={styles.backdrop} />}
    >
      <PaletteSearch onClose={onClose} />
    </Dialog>
  );
}

function PaletteSearch({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState('');
  const commands = useCommands();
  const found = useMemo(() => matching(commands, text), [commands, text]);
  return (
    <ComboboxProvider open value={text} setValue={setText} focusLoop>
      <Combobox
        autoSelect="always"
        autoFocus
        aria-label="Go to"
        placeholder="Go to a collection or a view"
        className={styles.input}
      />
      <ComboboxList className={styles.list} aria-label="Commands">
        {found.map(({ label, run }) => (
          <ComboboxItem
            key={label}
            value={label}
            setValueOnClick={false}
            className={styles.item}
            onClick={() => {
              onClose();
              run();
            }}
          />
        ))}
      </ComboboxList>
      {found.length === 0 && <p className={styles.none}>No view or collection matches “{text}”.</p>}
    </ComboboxProvider>
  );
}

function useCommands(): readonly PaletteCommand[] {
  const [, navigate] = useLocation();
  const { data: collections } = useCollections();
  return useMemo(
    () => [
      ...SERVICE_VIEWS.map(({ path, label }) => ({ label, run: () => navigate(path) })),
      ...(collections ?? []).flatMap(({ id }) =>
        COLLECTION_VIEWS.map(({ name, label }) => ({
          label: `${id}: ${label}`,
          run: () => navigate(collectionPath(id, name)),
        })),
      ),
      ...THEMES.map((name) => ({ label: `Theme: ${name}`, run: () => setTheme(name) })),
    ],
    [collections, navigate],
  );
}

/** The commands whose labels contain every word of the text. */
function matching(commands: readonly PaletteCommand[], text: string): readonly PaletteCommand[] {
  const words = text.toLowerCase().split(/\s+/);
  return commands
    .filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)))
    .slice(0, SHOWN_MAX);
}
