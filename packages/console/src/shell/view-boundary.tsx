// Shows a failure of a view in its place, so that the rest of the console goes on. Another address
// shows another view. After an upgrade of the server, the code of views has other names than an open
// page knows; it then has to be loaded again.

import { Component, type ReactNode } from 'react';
import { Button } from '../ui/button.js';
import { Empty, Problem } from '../ui/states.js';

interface State {
  readonly error: unknown;
}

export class ViewBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { error: undefined };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override componentDidMount() {
    window.addEventListener('hashchange', this.reset);
  }

  override componentWillUnmount() {
    window.removeEventListener('hashchange', this.reset);
  }

  readonly reset = () => this.setState({ error: undefined });

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    if (isMissingCode(error)) return <Reload />;
    return <Problem error={error} onRetry={this.reset} />;
  }
}

/** Browsers say it in different words. */
function isMissingCode(error: unknown): boolean {
  return error instanceof Error && /dynamically imported module|module script/.test(error.message);
}

function Reload() {
  return (
    <Empty title="This part of the console could not be loaded">
      <p>The server may have another version than when the page was opened.</p>
      <Button kind="primary" onClick={() => location.reload()}>
        Load the page again
      </Button>
    </Empty>
  );
}
