/** `--watch`: polls the modification times of a configuration and everything that it imports. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Reader } from '../../compiler/source/reader.ts';
import { parseConfig } from '../../compiler/syntax/parse-config.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';

/** Milliseconds between polls. */
const POLL_INTERVAL_MS = 1000;

/** Watches the files that a configuration reads, and calls back after each change. */
export class ConfigurationWatch {
	readonly #pollTimer: NodeJS.Timeout;
	/** The fingerprint of each path when it was last polled. */
	#fingerprints: ReadonlyMap<string, string>;

	/** Must be called before the configuration is compiled, so that no later change is missed. */
	constructor(input: ConfigInput, onChange: () => void) {
		const fingerprints = fingerprintsOf(watchedPathsOf(input));
		// The file may have changed since its text was read. In that case, the first poll reports a change.
		if (input.path !== undefined && readTextIfFile(input.path) !== input.text) fingerprints.set(input.path, '');
		this.#fingerprints = fingerprints;
		this.#pollTimer = setInterval(() => {
			const currentFingerprints = fingerprintsOf(this.#fingerprints.keys());
			if ([...currentFingerprints].every(([path, fingerprint]) => this.#fingerprints.get(path) === fingerprint)) return;
			this.#fingerprints = currentFingerprints;
			onChange();
		}, POLL_INTERVAL_MS);
	}

	/** Switches to the files of another configuration. Must be called before that configuration is loaded. */
	follow(input: ConfigInput): void {
		const previousFingerprints = this.#fingerprints;
		// Files that were already watched keep the fingerprint of the last poll, so that a change since then is not missed.
		this.#fingerprints = new Map(
			[...fingerprintsOf(watchedPathsOf(input))].map(([path, fingerprint]) => [
				path,
				previousFingerprints.get(path) ?? fingerprint,
			]),
		);
	}

	close(): void {
		clearInterval(this.#pollTimer);
	}
}

/**
 * Returns every path that the configuration refers to, including missing files and the folders of glob patterns, because creating
 * a file is a change, too.
 */
function watchedPathsOf(input: ConfigInput): string[] {
	const paths = new Set(input.path === undefined ? [] : [input.path]);
	if (input.format !== 'json') {
		try {
			parseConfig(input, recordingReader(diskReader(process.cwd()), paths), () => {}, { knownDirectives: new Set() });
		} catch {
			// The configuration has a mistake, which the load will report. Until then, the paths requested so far are watched.
		}
	}
	return [...paths];
}

function recordingReader(reader: Reader, paths: Set<string>): Reader {
	const record = (path: string): string => {
		paths.add(resolve(reader.workingDirectory, path));
		return path;
	};
	return {
		workingDirectory: reader.workingDirectory,
		readText: path => reader.readText(record(path)),
		readBytes: path => reader.readBytes(record(path)),
		list: path => reader.list(record(path)),
		kind: path => {
			const kind = reader.kind(path);
			// The modification time of a parent folder changes for unrelated reasons.
			if (kind !== 'directory') record(path);
			return kind;
		},
		env: name => reader.env(name),
	};
}

function readTextIfFile(path: string): string | undefined {
	const reader = diskReader(process.cwd());
	try {
		return reader.kind(path) === 'file' ? reader.readText(path) : undefined;
	} catch {
		return undefined;
	}
}

function fingerprintsOf(paths: Iterable<string>): Map<string, string> {
	return new Map([...paths].map(path => [path, fingerprintOf(path)]));
}

/**
 * Returns the time, size and inode of a file. The time alone does not suffice, because an editor may replace a file within one
 * clock tick.
 */
function fingerprintOf(path: string): string {
	try {
		const { mtimeMs, size, ino } = statSync(path);
		return `${mtimeMs} ${size} ${ino}`;
	} catch {
		return '';
	}
}
