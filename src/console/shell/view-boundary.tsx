// Shows a failure of a view in its place, so that the rest of the console goes on. Another address
// shows another view.

import { Component, type ReactNode } from 'react';
import { Problem } from '../ui/states.js';

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
    return error === undefined ? (
      this.props.children
    ) : (
      <Problem error={error} onRetry={this.reset} />
    );
  }
}
