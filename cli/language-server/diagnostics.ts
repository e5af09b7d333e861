/**
 * Publishes diagnostics while the user types. Checks are debounced, and results for texts that have changed meanwhile are
 * dropped.
 */
import { type Connection, type Diagnostic, DiagnosticSeverity, DiagnosticTag } from 'vscode-languageserver';
import type { Diagnostic as Finding } from '../../compiler/diagnostics/diagnostic.ts';
import type { Workspace } from '../../compiler/queries/workspace.ts';
import type { SourceSpan } from '../../compiler/source/source.ts';
import type { Documents } from './documents.ts';

/**
 * Milliseconds without a change before the texts are checked, if the last check has just ended: shorter than the pauses between
 * typed words, but longer than the pauses between the changes of one paste.
 */
const CHECK_DEBOUNCE_MS = 15;

/**
 * Milliseconds since the end of the previous check after which a change is checked at once. A change that arrives sooner was probably
 * queued while that check ran, and more changes may be queued behind it, so that the check waits for them.
 */
const QUIET_MS = 1;

const SEVERITIES = {
	error: DiagnosticSeverity.Error,
	warning: DiagnosticSeverity.Warning,
	note: DiagnosticSeverity.Information,
} as const;

/** The URI of the manual page that documents the rules. */
const MANUAL_URI = 'man:svc-configfile(5)';

/** A published diagnostic and the finding that it shows. */
export interface PublishedFinding {
	readonly diagnostic: Diagnostic;
	readonly finding: Finding;
}

/** Checks all configurations that contain an open file, and publishes their diagnostics. */
export class DiagnosticsPublisher {
	readonly #connection: Connection;
	readonly #documents: Documents;
	readonly #getWorkspace: () => Workspace;
	/** The published findings by path. They belong to the document versions in {@link #checkedVersions}. */
	#publishedByPath: ReadonlyMap<string, readonly PublishedFinding[]> = new Map();
	#checkedVersions: ReadonlyMap<string, number> = new Map();
	#changeCount = 0;
	#checkTimer: NodeJS.Timeout | undefined;
	#runningCheck: Promise<void> | undefined;
	#lastCheckEnd = Number.NEGATIVE_INFINITY;

	constructor(connection: Connection, documents: Documents, getWorkspace: () => Workspace) {
		this.#connection = connection;
		this.#documents = documents;
		this.#getWorkspace = getWorkspace;
	}

	/** Schedules a check after a change. */
	scheduleCheck(): void {
		this.#changeCount++;
		const isFirst = this.#checkTimer === undefined && !this.#runningCheck;
		const isQuiet = performance.now() - this.#lastCheckEnd >= QUIET_MS;
		clearTimeout(this.#checkTimer);
		this.#checkTimer = setTimeout(() => void this.#runCheck(), isFirst && isQuiet ? 0 : CHECK_DEBOUNCE_MS);
	}

	stop(): void {
		this.#changeCount++;
		clearTimeout(this.#checkTimer);
	}

	/** Returns the findings in a file. If a text has changed since the last check, checks first. */
	async findings(path: string): Promise<readonly PublishedFinding[]> {
		if (!this.isCurrent) await this.#runCheck();
		return this.isCurrent ? (this.#publishedByPath.get(path) ?? []) : [];
	}

	/** True if the texts have not changed since they were checked. */
	get isCurrent(): boolean {
		const currentVersions = this.#documents.versions();
		return (
			currentVersions.size === this.#checkedVersions.size &&
			[...currentVersions].every(([path, version]) => this.#checkedVersions.get(path) === version)
		);
	}

	async #runCheck(): Promise<void> {
		clearTimeout(this.#checkTimer);
		this.#checkTimer = undefined;
		while (this.#runningCheck) await this.#runningCheck;
		this.#runningCheck = this.#check().finally(() => {
			this.#runningCheck = undefined;
			this.#lastCheckEnd = performance.now();
		});
		await this.#runningCheck;
	}

	async #check(): Promise<void> {
		const changeCount = this.#changeCount;
		const versions = this.#documents.versions();
		const workspace = this.#getWorkspace();
		const findingsByPath = new Map<string, PublishedFinding[]>();
		for (const path of workspace.openPaths) findingsByPath.set(path, []);
		const roots = new Set(workspace.openPaths.flatMap(path => workspace.rootsOf(path)));
		for (const rootPath of roots) {
			const checkResult = await workspace.check(rootPath);
			// A text has changed meanwhile. The check for that change is already scheduled.
			if (this.#changeCount !== changeCount) return;
			if (!checkResult) continue;
			for (const finding of checkResult.diagnostics) this.#addFinding(findingsByPath, finding, rootPath);
		}
		const previousFindings = this.#publishedByPath;
		this.#publishedByPath = findingsByPath;
		this.#checkedVersions = versions;
		// Closed files are published first, so that a client that has received the diagnostics of the last open file has received
		// the diagnostics of all files.
		const closedPaths = [...new Set([...previousFindings.keys(), ...findingsByPath.keys()])].filter(
			path => !versions.has(path),
		);
		for (const path of [...closedPaths, ...versions.keys()]) {
			const diagnostics = (findingsByPath.get(path) ?? []).map(({ diagnostic }) => diagnostic);
			const version = versions.get(path);
			if (
				version === undefined &&
				JSON.stringify(previousFindings.get(path)?.map(entry => entry.diagnostic) ?? []) === JSON.stringify(diagnostics)
			)
				continue;
			void this.#connection.sendDiagnostics({
				uri: this.#documents.uriOf(path),
				...(version === undefined ? {} : { version }),
				diagnostics,
			});
		}
	}

	#addFinding(findingsByPath: Map<string, PublishedFinding[]>, finding: Finding, rootPath: string): void {
		const { code, severity, message, label, hint, span, related } = finding;
		const path = span?.source.path ?? rootPath;
		const place = span && this.#locationOf(span);
		const diagnostic: Diagnostic = {
			range: place?.range ?? { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } },
			severity: SEVERITIES[severity],
			code,
			codeDescription: { href: MANUAL_URI },
			source: 'svc',
			message: [label === undefined ? message : `${message} (${label})`, ...(hint === undefined ? [] : [hint])].join(
				'\n',
			),
		};
		const tag = tagOf(code);
		if (tag !== undefined) diagnostic.tags = [tag];
		const relatedLocations = (related ?? []).flatMap(relatedSpan => {
			const location = this.#locationOf(relatedSpan.span);
			return location ? [{ location, message: relatedSpan.message }] : [];
		});
		for (let importSpan = span?.source.importedAt; importSpan; importSpan = importSpan.source.importedAt) {
			const location = this.#locationOf(importSpan);
			if (location) relatedLocations.push({ location, message: 'imported here' });
		}
		if (relatedLocations.length > 0) diagnostic.relatedInformation = relatedLocations;
		const pathFindings = findingsByPath.get(path);
		// If several configurations import a file, most of its findings occur in each of them. They are published once.
		if (pathFindings?.some(entry => isSameDiagnostic(entry.diagnostic, diagnostic))) return;
		if (pathFindings) pathFindings.push({ diagnostic, finding });
		else findingsByPath.set(path, [{ diagnostic, finding }]);
	}

	#locationOf({ source, start, end }: SourceSpan): { uri: string; range: Diagnostic['range'] } | undefined {
		if (source.path === undefined) return undefined;
		return {
			uri: this.#documents.uriOf(source.path),
			range: this.#documents.toRange(source.path, source.text, { start, end }),
		};
	}
}

function isSameDiagnostic(left: Diagnostic, right: Diagnostic): boolean {
	const { start, end } = left.range;
	return (
		left.code === right.code &&
		left.message === right.message &&
		start.line === right.range.start.line &&
		start.character === right.range.start.character &&
		end.line === right.range.end.line &&
		end.character === right.range.end.character
	);
}

/**
 * Returns how an editor shows the text of a finding: faded if the text is unused or never runs, struck through if it is obsolete.
 */
function tagOf(code: string): DiagnosticTag | undefined {
	if (/\/(?:unused|never-runs|covered|no-effect)$/.test(code)) return DiagnosticTag.Unnecessary;
	return /\/old-(?:spelling|argument)$|\/deprecated$/.test(code) ? DiagnosticTag.Deprecated : undefined;
}
