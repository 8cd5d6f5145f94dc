// The command palette: opens any view of any collection by a part of its name, or a vector of the current collection by
// the beginning of its id, searches collections for words, and runs actions.

import {
  Combobox,
  ComboboxItem,
  ComboboxList,
  ComboboxProvider,
  Dialog,
  useComboboxContext,
} from '@ariakit/react';
import { useEffect, useMemo, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useCollections } from '../api/queries.js';
import { useStore } from '../api/store.js';
import { copyText } from '../ui/copy-button.js';
import { notify } from '../ui/notices.js';
import { setTheme, THEMES, toggleTheme } from '../ui/theme.js';
import { viewActions } from '../ui/view-actions.js';
import { browseState } from '../views/browse/browse-state.js';
import { useIdSuggestions } from '../views/filter/use-suggestions.js';
import { isCreatingCollection } from '../views/overview/creating.js';
import { wordsKind } from '../views/query/searchable.js';
import { collectionPath, SERVICE_VIEWS, wordsPath } from '../views/routes.js';
import styles from './command-palette.module.css';
import { DOCUMENTS } from './help-menu.js';
import {
  collectionAt,
  matching,
  type PaletteCommand,
  SHOWN_MAX,
  viewCommands,
} from './palette-commands.js';

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
  const [location] = useLocation();
  const current = collectionAt(location);
  const commands = useCommands(current);
  const vectors = useVectorCommands(current, text.trim());
  const searches = useSearchCommands(current, text.trim());
  const found = useMemo(
    () => [...matching(commands, text), ...vectors, ...searches],
    [commands, vectors, searches, text],
  );
  const isChosen = useRef(false);
  const choose = ({ run }: PaletteCommand) => {
    // Enter may also click the active item, after which the palette must not run a toggle again.
    if (isChosen.current) return;
    isChosen.current = true;
    onClose();
    run();
  };
  return (
    <ComboboxProvider open value={text} setValue={setText} focusLoop>
      <Combobox
        autoSelect="always"
        autoFocus
        aria-label="Go to"
        placeholder={
          current === undefined
            ? 'Search views and actions'
            : `Search views, actions and ids in ${current}`
        }
        className={styles.input}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.nativeEvent.isComposing) return;
          // Items that were found while typing may not be active yet.
          event.preventDefault();
          const list = event.currentTarget.closest('[role=dialog]');
          const options = [...(list?.querySelectorAll('[role=option]') ?? [])];
          const active = options.findIndex((option) => option.matches('[data-active-item]'));
          const command = found[Math.max(0, active)];
          if (command !== undefined) choose(command);
        }}
      />
      <ComboboxList className={styles.list} aria-label="Commands">
        {found.map((command) => (
          <ComboboxItem
            key={`${command.note} ${command.label}`}
            value={command.label}
            setValueOnClick={false}
            className={styles.item}
            onClick={() => choose(command)}
          >
            <span dir="auto">{command.label}</span>
            <span className={styles.note}>{command.note}</span>
          </ComboboxItem>
        ))}
      </ComboboxList>
      <FirstActive commands={found} />
      {found.length === 0 && <p className={styles.none}>Nothing matches “{text}”.</p>}
    </ComboboxProvider>
  );
}

/** Makes the first command active if none is, since commands that are found while typing are not selected by themselves. */
function FirstActive({ commands }: { readonly commands: readonly PaletteCommand[] }) {
  const combobox = useComboboxContext();
  useEffect(() => {
    if (combobox === undefined || commands.length === 0) return;
    const timer = setTimeout(() => {
      if (combobox.getState().activeId == null) combobox.move(combobox.first());
    });
    return () => clearTimeout(timer);
  }, [combobox, commands]);
  return null;
}

/** What concerns the current view and collection comes first, other collections last. */
function useCommands(current: string | undefined): readonly PaletteCommand[] {
  const [, navigate] = useLocation();
  const { data: collections } = useCollections();
  const ofView = useStore(viewActions);
  return useMemo(() => {
    const ids = (collections ?? []).map(({ id }) => id);
    const viewsOf = (some: readonly string[]) =>
      some.flatMap((id) =>
        viewCommands(id, (opened, view) => navigate(collectionPath(opened, view))),
      );
    return [
      ...ofView.map((action) => ({ ...action, note: 'action' })),
      ...viewsOf(ids.filter((id) => id === current)),
      ...actionsWith(navigate),
      ...SERVICE_VIEWS.map(({ path, label }) => ({
        label,
        note: 'server',
        run: () => navigate(path),
      })),
      ...viewsOf(ids.filter((id) => id !== current)),
    ];
  }, [collections, current, navigate, ofView]);
}

function actionsWith(navigate: (path: string) => void): PaletteCommand[] {
  const actions: readonly (readonly [string, () => void])[] = [
    [
      'New collection',
      () => {
        isCreatingCollection.set(true);
        navigate('/');
      },
    ],
    ['Import a file', () => navigate('/import')],
    ['Copy the address of this page', () => void copyAddress()],
    ['Toggle theme', toggleTheme],
    ...THEMES.map((name) => [`Theme: ${name}`, () => setTheme(name)] as const),
    ...DOCUMENTS.map(
      ({ url, label }) => [label, () => void window.open(url, '_blank', 'noreferrer')] as const,
    ),
  ];
  return actions.map(([label, run]) => ({ label, note: 'action', run }));
}

async function copyAddress(): Promise<void> {
  await copyText(location.href);
  notify('Copied the address of this page.');
}

/** Opens the vectors whose ids begin with the text. */
function useVectorCommands(collection: string | undefined, text: string): PaletteCommand[] {
  const [, navigate] = useLocation();
  const isActive = collection !== undefined && text !== '';
  const suggestions = useIdSuggestions(collection ?? '', text, isActive);
  return useMemo(() => {
    if (!isActive) return [];
    return suggestions.map(({ value: id }) => ({
      label: id,
      note: `vector of ${collection}`,
      run: () => {
        const state = browseState(collection);
        state.set({ ...state.get(), openId: id });
        navigate(collectionPath(collection, 'browse'));
      },
    }));
  }, [suggestions, collection, isActive, navigate]);
}

/** Searches each collection for the text if it can be searched by words, the current one first. */
function useSearchCommands(current: string | undefined, text: string): PaletteCommand[] {
  const [, navigate] = useLocation();
  const { data: collections } = useCollections();
  return useMemo(() => {
    if (text === '' || collections === undefined) return [];
    const isCurrent = ({ id }: { readonly id: string }) => id === current;
    const ordered = [...collections].sort((a, b) => Number(isCurrent(b)) - Number(isCurrent(a)));
    const searchable = ordered.filter((collection) => wordsKind(collection) !== undefined);
    return searchable.slice(0, SHOWN_MAX).map((collection) => ({
      label: `Search for “${text}”`,
      note: `in ${collection.id}`,
      run: () => navigate(wordsPath(collection, text)!),
    }));
  }, [collections, current, navigate, text]);
}
