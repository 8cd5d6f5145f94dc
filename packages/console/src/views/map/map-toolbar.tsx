// The toolbar of the map: layout, colours, search and tools.

import { Hand, LassoSelect, Maximize, Play, Tags } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button, IconButton } from '../../ui/button.js';
import { SelectField } from '../../ui/field.js';
import styles from './map.module.css';
import type { Layout, MapDraft } from './map-state.js';
import type { Tool } from './use-map-gestures.js';

interface MapToolbarProps {
  readonly draft: MapDraft;
  readonly layout: Layout;
  readonly onChange: (part: Partial<MapDraft>) => void;
  readonly onLayOut: () => void;
  /** The metadata paths that can colour the points. */
  readonly paths: readonly string[];
  readonly colourPath: string;
  readonly onColourPath: (path: string) => void;
  readonly tool: Tool;
  readonly onTool: (tool: Tool) => void;
  readonly onFit: () => void;
  /** The search for points. */
  readonly children: ReactNode;
}

const LAYOUTS = [
  { value: 'umap', label: 'UMAP' },
  { value: 'pca', label: 'PCA' },
] as const;

export function MapToolbar(props: MapToolbarProps) {
  const { draft, paths, colourPath, tool, onTool, onChange } = props;
  const { areLabelsShown } = draft;
  const colourPaths = [
    { value: '', label: 'One colour' },
    ...paths.map((value) => ({ value, label: value })),
  ];
  return (
    <>
      <SelectField
        label="Layout"
        value={draft.layout}
        options={LAYOUTS}
        onChange={(layout) => onChange({ layout })}
      />
      <div className={styles.colour}>
        <SelectField
          label="Colour by"
          value={colourPath}
          options={colourPaths}
          onChange={props.onColourPath}
        />
      </div>
      {props.children}
      <fieldset className={styles.tools} aria-label="Tools of the map">
        <IconButton
          icon={Hand}
          label="Move the map"
          aria-pressed={tool === 'pan'}
          onClick={() => onTool('pan')}
        />
        <IconButton
          icon={LassoSelect}
          label="Select with a lasso"
          aria-pressed={tool === 'lasso'}
          onClick={() => onTool('lasso')}
        />
        <IconButton
          icon={Tags}
          label="Show labels"
          aria-pressed={areLabelsShown}
          onClick={() => onChange({ areLabelsShown: !areLabelsShown })}
        />
        <IconButton icon={Maximize} label="Fit the map into view" onClick={props.onFit} />
      </fieldset>
      {draft.layout === 'umap' && <LayoutState layout={props.layout} onLayOut={props.onLayOut} />}
    </>
  );
}

/** The state of UMAP while it does not run. */
function LayoutState({ layout, onLayOut }: Pick<MapToolbarProps, 'layout' | 'onLayOut'>) {
  if (layout.kind === 'done') return <span className={styles.note}>UMAP is complete.</span>;
  if (layout.kind !== 'none' && layout.kind !== 'stopped') return null;
  return (
    <Button kind="quiet" icon={Play} onClick={onLayOut}>
      Run UMAP
    </Button>
  );
}
