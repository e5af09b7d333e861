/** Publishes diagnostics while somebody types: debounced, and never for a text that has changed meanwhile. */
import { type Connection, type Diagnostic, DiagnosticSeverity, DiagnosticTag } from 'vscode-languageserver';
import type { Diagnostic as Finding } from '../../compiler/diagnostics/diagnostic.ts';
import type { Workspace } from '../../compiler/queries/workspace.ts';
import type { SourceSpan } from '../../compiler/source/source.ts';
import type { Documents } from './documents.ts';

/** Milliseconds without a change before the texts are checked: shorter than the pauses between words, longer than those of a paste. */
const DEBOUNCE_MS = 15;

const SEVERITIES = {
	error: DiagnosticSeverity.Error,
	warning: DiagnosticSeverity.Warning,
	note: DiagnosticSeverity.Information,
} as const;

/** Where the rules are documented. */
const MANUAL = 'man:svc-configfile(5)';

/** A published diagnostic and the finding that it shows. */
export interface ShownFinding {
	readonly diagnostic: Diagnostic;
	readonly finding: Finding;
}

/** The diagnostics of all configurations that have an open text. */
export class DiagnosticsPublisher {
	readonly #connection: Connection;
	readonly #documents: Documents;
	readonly #workspace: () => Workspace;
	/** Findings by path, for the versions in {@link #versions}. */
	#shown: ReadonlyMap<string, readonly ShownFinding[]> = new Map();
	#versions: ReadonlyMap<string, number> = new Map();
	#changes = 0;
	#timer: NodeJS.Timeout | undefined;
	#running: Promise<void> | undefined;

	constructor(connection: Connection, documents: Documents, workspace: () => Workspace) {
		this.#connection = connection;
		this.#documents = documents;
		this.#workspace = workspace;
	}

	/** Schedules a check after a change. */
	changed(delay: number = DEBOUNCE_MS): void {
		this.#changes++;
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => void this.#run(), delay);
	}

	stop(): void {
		this.#changes++;
		clearTimeout(this.#timer);
	}

	/** Returns the findings in a file; checks first if the texts have changed since. */
	async findings(path: string): Promise<readonly ShownFinding[]> {
		if (!this.isCurrent) await this.#run();
		return this.isCurrent ? (this.#shown.get(path) ?? []) : [];
	}

	/** True if the texts have not changed since they were checked. */
	get isCurrent(): boolean {
		const now = this.#documents.versions();
		return (
			now.size === this.#versions.size && [...now].every(([path, version]) => this.#versions.get(path) === version)
		);
	}

	async #run(): Promise<void> {
		clearTimeout(this.#timer);
		while (this.#running) await this.#running;
		this.#running = this.#check().finally(() => {
			this.#running = undefined;
		});
		await this.#running;
	}

	async #check(): Promise<void> {
		const change = this.#changes;
		const versions = this.#documents.versions();
		const workspace = this.#workspace();
		const shown = new Map<string, ShownFinding[]>();
		for (const path of workspace.opened) shown.set(path, []);
		const roots = new Set(workspace.opened.flatMap(path => workspace.rootsOf(path)));
		for (const root of roots) {
			const checked = await workspace.check(root);
			// A text has changed meanwhile: its own check is already scheduled.
			if (this.#changes !== change) return;
			if (!checked) continue;
			for (const finding of checked.diagnostics) this.#add(shown, finding, root);
		}
		const before = this.#shown;
		this.#shown = shown;
		this.#versions = versions;
		// Closed files first: with the version of the last open one, everything has been published.
		const closed = [...new Set([...before.keys(), ...shown.keys()])].filter(path => !versions.has(path));
		for (const path of [...closed, ...versions.keys()]) {
			const diagnostics = (shown.get(path) ?? []).map(({ diagnostic }) => diagnostic);
			const version = versions.get(path);
			if (
				version === undefined &&
				JSON.stringify(before.get(path)?.map(one => one.diagnostic) ?? []) === JSON.stringify(diagnostics)
			)
				continue;
			void this.#connection.sendDiagnostics({
				uri: this.#documents.uriOf(path),
				...(version === undefined ? {} : { version }),
				diagnostics,
			});
		}
	}

	#add(shown: Map<string, ShownFinding[]>, finding: Finding, root: string): void {
		const { code, severity, message, label, hint, span, related } = finding;
		const path = span?.source.path ?? root;
		const place = span && this.#location(span);
		const diagnostic: Diagnostic = {
			range: place?.range ?? { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } },
			severity: SEVERITIES[severity],
			code,
			codeDescription: { href: MANUAL },
			source: 'svc',
			message: [label === undefined ? message : `${message} (${label})`, ...(hint === undefined ? [] : [hint])].join(
				'\n',
			),
		};
		const tag = tagOf(code);
		if (tag !== undefined) diagnostic.tags = [tag];
		const places = (related ?? []).flatMap(one => {
			const location = this.#location(one.span);
			return location ? [{ location, message: one.message }] : [];
		});
		for (let at = span?.source.importedAt; at; at = at.source.importedAt) {
			const location = this.#location(at);
			if (location) places.push({ location, message: 'imported here' });
		}
		if (places.length > 0) diagnostic.relatedInformation = places;
		const list = shown.get(path);
		// A file that several configurations import has most of its findings in each of them.
		if (list?.some(one => isSame(one.diagnostic, diagnostic))) return;
		if (list) list.push({ diagnostic, finding });
		else shown.set(path, [{ diagnostic, finding }]);
	}

	#location({ source, start, end }: SourceSpan): { uri: string; range: Diagnostic['range'] } | undefined {
		if (source.path === undefined) return undefined;
		return {
			uri: this.#documents.uriOf(source.path),
			range: this.#documents.range(source.path, source.text, { start, end }),
		};
	}
}

function isSame(one: Diagnostic, other: Diagnostic): boolean {
	const { start, end } = one.range;
	return (
		one.code === other.code &&
		one.message === other.message &&
		start.line === other.range.start.line &&
		start.character === other.range.start.character &&
		end.line === other.range.end.line &&
		end.character === other.range.end.character
	);
}

/** Returns how an editor shows the text of a finding: faded if it is unused or never runs, struck through if it is obsolete. */
function tagOf(code: string): DiagnosticTag | undefined {
	if (/\/(?:unused|never-runs|covered|no-effect)$/.test(code)) return DiagnosticTag.Unnecessary;
	return /\/old-(?:spelling|argument)$|\/deprecated$/.test(code) ? DiagnosticTag.Deprecated : undefined;
}
