/**
 * The log writers. Logs with equal outputs share a writer, which is closed after its last use. Writers are opened before the
 * configuration that names them is activated.
 */

import type { LogOutput } from '../../compiler/document/log-settings.ts';
import {
	type CollectorAddress,
	parseCollectorAddress,
} from '../../compiler/modules/providers/log-writers/net-output.ts';
import { systemReason } from '../files/system-reason.ts';
import { leaseKey } from '../threads/lease-registry.ts';
import { openLogFile } from './file-writer.ts';
import type { LogEntry } from './log-entry.ts';
import { type LineKind, LOSS_TOO_SLOW, LogLosses, type WriterEvents } from './log-losses.ts';
import { type PostedLines, releaseSegment, segmentBytes } from './log-segment.ts';
import { DescriptorWriter, DISCARDING_WRITER, type LogWriter } from './log-writer.ts';
import type { ExpandText } from './machine-text.ts';
import { DatagramWriter, StreamWriter } from './net-writer.ts';

export type LogOutputSettings = LogOutput;

/** Writers that are used instead of the process's standard output and standard error. */
export interface StandardWriters {
	readonly stdout?: LogWriter;
	readonly stderr?: LogWriter;
}

/** Thrown if an output cannot be opened. The message names the output. */
export class LogOutputError extends Error {
	/** `log/invalid-output` if no machine could open the output. */
	readonly code: 'log/output' | 'log/invalid-output';

	constructor(message: string, code: LogOutputError['code'] = 'log/output') {
		super(message);
		this.name = 'LogOutputError';
		this.code = code;
	}
}

/** Connection timeout of a collector, in milliseconds. */
const DIAL_TIMEOUT_MS = 10_000;

interface Sink {
	readonly output: LogOutputSettings;
	readonly writer: LogWriter;
	readonly losses: LogLosses;
	userCount: number;
}

/** Receives reports on lost lines; `key` is the affected output. */
export type ReportLosses = (entry: LogEntry, key: string) => void;

/** Returns the key of an output: logs with equal settings share one writer. */
export function sinkKey(output: LogOutputSettings): string {
	return leaseKey('log', output);
}

/** Returns the file or collector of an output; undefined for standard streams. Throws LogOutputError. */
export function outputLocation(
	output: LogOutputSettings,
	expand: ExpandText,
): { readonly file: string } | { readonly collector: CollectorAddress } | undefined {
	const expandRequired = (text: string, purpose: string): string =>
		expand(text, placeholder => {
			throw new LogOutputError(`The ${purpose} ${text} cannot be determined: ${placeholder} is empty.`);
		});
	if (output.writer === 'file') {
		const file = expandRequired(output.path ?? '', 'log file');
		if (file === '') throw new LogOutputError('A log file needs a path.', 'log/invalid-output');
		return { file };
	}
	if (output.writer !== 'net') return undefined;
	const addressText = expandRequired(output.address ?? '', 'log collector');
	const collector = parseCollectorAddress(addressText);
	if (!collector) {
		// A placeholder's value is the machine's, for example that of an environment variable.
		const code = addressText === output.address ? 'log/invalid-output' : 'log/output';
		throw new LogOutputError(`\`${addressText}\` is not the address of a log collector.`, code);
	}
	return { collector };
}

/** The log writers of the process. */
export class LogSinks {
	readonly #sinks = new Map<string, Sink>();
	readonly #standardWriters: StandardWriters;
	readonly #workingDirectory: string;
	readonly #expand: ExpandText;
	readonly #pendingCloses = new Set<Promise<void>>();
	readonly #reportLosses: ReportLosses;
	/** The losses of open outputs and of outputs that are being closed. */
	readonly #losses = new Set<LogLosses>();
	/** Number of lines lost by outputs that have been closed. */
	readonly #lostByClosed: Record<LineKind, number> = { access: 0, process: 0 };

	/** Whether files are rolled. False while another process that writes to the same files rolls them. */
	readonly #rolling = { allowed: true };

	/**
	 * @param expand Expands placeholders in paths; by default, returns them unchanged.
	 * @param report Receives reports on lost lines.
	 */
	constructor(
		standardWriters: StandardWriters,
		workingDirectory: string,
		expand: ExpandText = path => path,
		report: ReportLosses = () => {},
	) {
		this.#standardWriters = standardWriters;
		this.#reportLosses = report;
		this.#workingDirectory = workingDirectory;
		this.#expand = expand;
	}

	/** Sets whether this process rolls log files. Of the processes that append to the same files, at most one may roll them. */
	set rolls(allowed: boolean) {
		this.#rolling.allowed = allowed;
	}

	/** Acquires a writer, opening it if necessary. Throws LogOutputError. */
	acquire(output: LogOutputSettings): LogWriter {
		const key = sinkKey(output);
		let sink = this.#sinks.get(key);
		if (!sink) {
			const losses = new LogLosses(outputName(output), entry => this.#reportLosses(entry, key));
			sink = { output, writer: this.#openWriter(output, losses), losses, userCount: 0 };
			this.#losses.add(losses);
			this.#sinks.set(key, sink);
		}
		sink.userCount++;
		return sink.writer;
	}

	/** Releases a writer. After the last release, it is closed once its lines have been written. */
	release(key: string): void {
		const sink = this.#sinks.get(key);
		if (!sink || --sink.userCount > 0) return;
		this.#sinks.delete(key);
		const { writer, losses } = sink;
		const pendingClose = writer.close().finally(() => {
			this.#pendingCloses.delete(pendingClose);
			losses.close();
			this.#losses.delete(losses);
			this.#lostByClosed.access += losses.lostLines.access;
			this.#lostByClosed.process += losses.lostLines.process;
		});
		this.#pendingCloses.add(pendingClose);
	}

	/** Returns the number of lines of this kind that all outputs have lost so far. */
	lostLines(kind: LineKind): number {
		let lostLineCount = this.#lostByClosed[kind];
		for (const { lostLines } of this.#losses) lostLineCount += lostLines[kind];
		return lostLineCount;
	}

	/** Returns the writer in use that has this key. */
	get(key: string): LogWriter | undefined {
		return this.#sinks.get(key)?.writer;
	}

	/**
	 * Writes `entryCount` lines of access logs to the writer that has this key, and returns their segment to its thread. If there
	 * is no such writer, counts the lines as lost.
	 */
	write(key: string, lines: PostedLines, entryCount: number): void {
		const writer = this.#sinks.get(key)?.writer;
		if (!writer) this.#lostByClosed.access += entryCount;
		if (typeof lines === 'string') {
			writer?.write(lines, 'access');
			return;
		}
		const { memory, length } = lines;
		const bytes = segmentBytes(memory, length);
		if (writer?.writeBytes) {
			writer.writeBytes(bytes, () => releaseSegment(memory));
			return;
		}
		writer?.write(bytes.toString(), 'access');
		releaseSegment(memory);
	}

	/** Reports lines that a worker thread dropped and has counted itself. */
	onDroppedByThread(key: string, entryCount: number): void {
		this.#sinks.get(key)?.losses.reportLosses(entryCount, LOSS_TOO_SLOW);
	}

	/** Waits until each of the writers in use has shown whether it can write. Rejects with LogOutputError. */
	async whenAllOpened(): Promise<void> {
		for (const { output, writer } of this.#sinks.values()) {
			try {
				await writer.whenOpened;
			} catch (error) {
				const code = (error as { code?: string }).code ?? 'EIO';
				throw new LogOutputError(`The log collector ${output.address} cannot be reached: ${code}.`);
			}
		}
	}

	/**
	 * Waits until everything is written, for at most `maxWaitMs` milliseconds, because a stalled reader of a pipe must not block the
	 * process.
	 */
	async flush(maxWaitMs: number): Promise<void> {
		const allFlushed = Promise.all([
			...[...this.#sinks.values()].map(sink => sink.writer.flush()),
			...this.#pendingCloses,
		]);
		let timer: NodeJS.Timeout | undefined;
		await Promise.race([
			allFlushed,
			new Promise(resolve => {
				timer = setTimeout(resolve, maxWaitMs);
			}),
		]);
		clearTimeout(timer);
	}

	#openWriter(output: LogOutputSettings, events: WriterEvents): LogWriter {
		switch (output.writer) {
			case 'stdout':
				return this.#standardWriters.stdout ?? new DescriptorWriter(1, { events });
			case 'stderr':
				return this.#standardWriters.stderr ?? new DescriptorWriter(2, { events });
			case 'discard':
				return DISCARDING_WRITER;
			case 'file':
				return this.#openFile(output, events);
			case 'net':
				return this.#openNet(output, events);
			default:
				throw new LogOutputError(`\`${output.writer}\` is not a log output of this build.`, 'log/invalid-output');
		}
	}

	#openFile(output: LogOutputSettings, events: WriterEvents): LogWriter {
		const { file: path } = outputLocation(output, this.#expand) as { readonly file: string };
		try {
			return openLogFile(path, this.#workingDirectory, output, { events, rolling: this.#rolling });
		} catch (error) {
			const code = (error as { code?: string }).code ?? 'EIO';
			throw new LogOutputError(`The log file ${path} cannot be opened: ${systemReason(code)}.`);
		}
	}

	#openNet(output: LogOutputSettings, events: WriterEvents): LogWriter {
		const { collector: address } = outputLocation(output, this.#expand) as { readonly collector: CollectorAddress };
		if (address.network === 'udp') return new DatagramWriter(address, events);
		const fallback = output.soft_start ? this.#openWriter({ writer: 'stderr' }, events) : undefined;
		return new StreamWriter(address, {
			connectTimeoutMs: output.dial_timeout ?? DIAL_TIMEOUT_MS,
			fallbackWriter: fallback,
			events,
		});
	}
}

function outputName({ writer, path, address }: LogOutputSettings): string {
	return [writer, path ?? address].filter(part => part !== undefined).join(' ');
}
