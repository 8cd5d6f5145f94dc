// The toolbar of the map: layout, colours, tool, and the progress of the layout.

import { Hand, LassoSelect, Maximize, Play, Square, Tags } from 'lucide-react';
import { Button, IconButton } from '../../ui/button.js';
import { SelectField } from '../../ui/field.js';
import { formatCount } from '../../ui/format.js';
import styles from './map.module.css';
import type { Layout, MapDraft } from './map-state.js';
import type { Tool } from './use-map-gestures.js';

interface MapToolbarProps {
  readonly draft: MapDraft;
  readonly layout: Layout;
  readonly onChange: (part: Partial<MapDraft>) => void;
  readonly onLayOut: () => void;
  readonly onStop: () => void;
  /** The metadata paths that can colour the points. */
  readonly paths: readonly string[];
  readonly colourPath: string;
  readonly onColourPath: (path: string) => void;
  readonly tool: Tool;
  readonly onTool: (tool: Tool) => void;
  readonly onFit: () => void;
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
        isLabelHidden
        value={draft.layout}
        options={LAYOUTS}
        onChange={(layout) => onChange({ layout })}
      />
      <div className={styles.colour}>
        <SelectField
          label="Colour by"
          isLabelHidden
          value={colourPath}
          options={colourPaths}
          onChange={props.onColourPath}
        />
      </div>
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
          label="Show the labels of categories"
          aria-pressed={areLabelsShown}
          onClick={() => onChange({ areLabelsShown: !areLabelsShown })}
        />
        <IconButton icon={Maximize} label="Fit the map into view" onClick={props.onFit} />
      </fieldset>
      {draft.layout === 'umap' && (
        <LayoutProgress layout={props.layout} onLayOut={props.onLayOut} onStop={props.onStop} />
      )}
    </>
  );
}

interface LayoutProgressProps {
  readonly layout: Layout;
  readonly onLayOut: () => void;
  readonly onStop: () => void;
}

function LayoutProgress({ layout, onLayOut, onStop }: LayoutProgressProps) {
  if (layout.kind === 'failed') return null;
  if (layout.kind === 'done') return <span className={styles.note}>UMAP is complete.</span>;
  if (layout.kind === 'none' || layout.kind === 'stopped') {
    return (
      <Button kind="quiet" icon={Play} onClick={onLayOut}>
        Run UMAP
      </Button>
    );
  }
  return (
    <div className={styles.progress}>
      {layout.kind === 'neighbors' ? (
        <>
          <progress aria-label="Neighbours" />
          <span>Finding neighbours</span>
        </>
      ) : (
        <>
          <progress aria-label="Epochs of UMAP" value={layout.epoch} max={layout.epochCount} />
          <span>
            {formatCount(layout.epoch)} of {formatCount(layout.epochCount)} epochs
          </span>
        </>
      )}
      <IconButton icon={Square} label="Stop UMAP" onClick={onStop} />
    </div>
  );
}
