/** The compile thread. Keeps the running document and a candidate, and answers requests to read the configuration. */
import { createHmac } from 'node:crypto';
import type { MessagePort } from 'node:worker_threads';
import type { HostFacts } from '../../compiler/codegen/placeholders/placeholder.ts';
import type { Plan } from '../../compiler/codegen/plan/plan.ts';
import { type CompileResult, compile, createCompiler } from '../../compiler/compiler.ts';
import type { Diagnostic, DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import { toReport, toWithheldReport } from '../../compiler/diagnostics/diagnostic-report.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Document } from '../../compiler/document/document.ts';
import type { CompilerSession } from '../../compiler/incremental/compiler-session.ts';
import type { StepPlaces } from '../../compiler/lower/step-places.ts';
import { documentDifference } from '../../compiler/schema/difference.ts';
import { printedForm } from '../../compiler/schema/printed-form.ts';
import { redactSecrets } from '../../compiler/schema/secrets.ts';
import type { Reader } from '../../compiler/source/reader.ts';
import { ThreadVitals } from '../metrics/thread-vitals.ts';
import { locateFindings, type TargetMachine } from '../preflight/finding.ts';
import { hostFacts } from '../threads/host-facts.ts';
import { lowerPriority } from '../threads/lower-priority.ts';
import { startThreadMemoryRelief } from '../threads/memory-relief.ts';
import { stallThread } from '../threads/stop-answering.ts';
import { ThreadActivity } from '../threads/thread-activity.ts';
import {
	createDocumentImage,
	type DocumentImage,
	DocumentImageCache,
	documentFacts,
	documentJson,
	generationDelta,
	haveSamePlaces,
	isSameDocument,
} from '../worker/document-image.ts';
import type {
	CompilerReplies,
	CompilerReply,
	CompilerRequest,
	PrepareOptions,
	PrepareResult,
} from './compiler-messages.ts';
import { diskReader } from './disk-reader.ts';
import { editedDocument, pathOfId, valueAtPath } from './edited-document.ts';
import type { ConfigEdit, EditRefused, IrreversibleLoad, LoadPreview, MeaningDifference } from './load-results.ts';
import { restartReasons } from './restart-reasons.ts';

/** Start parameters of the thread. */
export interface CompilerStart {
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
	/** Key of the Etag hashes, so that an Etag reveals nothing about secrets that it covers. */
	readonly etagKey: Uint8Array;
	/** UTF-8 JSON of the running document, if this thread replaces one that died. */
	readonly running?: ArrayBuffer | undefined;
	/** Host names that the process has served over TLS before this thread started. */
	readonly served?: readonly string[] | undefined;
	/** Memory of the thread's ThreadActivity. */
	readonly activity: SharedArrayBuffer;
	/** Memory of the thread's ThreadVitals. */
	readonly vitals: SharedArrayBuffer;
}

/**
 * Nice value of the thread, so that requests take slight precedence. With a value of 5, compiling ten thousand sites on busy cores
 * took seconds longer.
 */
const NICE = 1;

/** Minimum number of characters of a source text that takes noticeable time to compile. */
const LONG_TEXT_CHARACTERS = 1024 * 1024;

/** Replies with at least this many characters are encoded once and shared between threads instead of copied. */
const LONG_READING_CHARACTERS = 64 * 1024;

/** Serves requests of the main thread until it ends this thread. */
export function runCompilerThread(port: MessagePort, start: CompilerStart): void {
	lowerPriority(NICE);
	const activity = new ThreadActivity(start.activity);
	activity.beat();
	startThreadMemoryRelief();
	const compilation = new Compilation(start);
	const vitals = new ThreadVitals(start.vitals);
	port.on('message', async (request: CompilerRequest) => {
		activity.beat();
		vitals.recordIfWanted();
		let reply: CompilerReply;
		try {
			reply = { id: request.id, answer: await compilation.answer(request) };
		} catch (error) {
			const { message, stack } = error instanceof Error ? error : new Error(String(error));
			reply = { id: request.id, failure: message, ...(stack === undefined ? {} : { stack }) };
		}
		// The buffer is transferred, not copied, because only the main thread keeps the latest document.
		port.postMessage(reply, reply.answer instanceof ArrayBuffer ? [reply.answer] : []);
	});
}

type Answer = CompilerReplies[CompilerRequest['op']];

/** The running document and the candidate of a load. Answers requests about both. */
class Compilation {
	readonly #reader: Reader;
	readonly #machine: TargetMachine;
	readonly #facts: HostFacts;
	readonly #etagKey: Uint8Array;
	/**
	 * Compiles the configurations of loads. `adapt` does not use it, because an unrelated configuration would displace what this
	 * session remembers.
	 */
	#compiler: CompilerSession;
	/** Number of characters of the source text that {@link #compiler} compiled last. */
	#compiledLength = 0;
	readonly #imageCache = new DocumentImageCache();
	/** All host names that the process has served over TLS. */
	readonly #servedNames: Set<string>;
	#runningImage: DocumentImage | undefined;
	#candidateImage: DocumentImage | undefined;
	/** The files of all documents that have run while this thread existed. Diagnostics for clients may quote these files. */
	#quotableFiles: ReadonlySet<string> = new Set();
	#candidateFiles: readonly string[] = [];
	#redacted: { readonly image: DocumentImage; readonly value: unknown } | undefined;
	/** The last answer to `read`, so that polling a large document does not serialize it each time. */
	#lastReading:
		| { readonly image: DocumentImage; readonly key: string; readonly answer: CompilerReplies['read'] }
		| undefined;

	constructor({ workingDirectory, environment, etagKey, running, served }: CompilerStart) {
		this.#reader = diskReader(workingDirectory, environment);
		this.#etagKey = etagKey;
		this.#servedNames = new Set(served);
		this.#machine = { workingDirectory, environment };
		this.#facts = hostFacts(workingDirectory, environment);
		this.#compiler = createCompiler(this.#reader, { places: true, facts: this.#facts });
		if (running) {
			const text = Buffer.from(running).toString();
			const { document, plan } = this.#compiler.compile({ format: 'json', text, name: '<running>' });
			// The contents of the files when this document was loaded are no longer known.
			if (document) this.#runningImage = { ...this.#image(document, plan), filesDigest: undefined };
		}
	}

	answer(request: CompilerRequest): Answer | Promise<Answer> {
		switch (request.op) {
			case 'adapt':
				return this.#adapt(request.input);
			case 'prepare':
				return request.reversible
					? this.#prepareReversible(request.input, request).then(prepared => this.#discardUnlessUsable(prepared))
					: this.#discardUnlessUsable(this.#prepare(request.input, request));
			case 'edit':
				return this.#discardUnlessUsable(this.#edit(request.edit, request));
			case 'preview':
				return this.#preview(request.input, request);
			case 'commit':
				// If this thread replaces one that died between the two phases, there is no candidate, and the load must fail.
				if (!this.#candidateImage) throw new Error('The compile thread died during the load.');
				this.#runningImage = this.#candidateImage;
				this.#quotableFiles = this.#quotableFiles.union(new Set(this.#candidateFiles));
				for (const name of this.#runningImage.certificates?.names ?? []) this.#servedNames.add(name);
				this.#candidateImage = undefined;
				return documentBytes(this.#runningImage);
			case 'discard':
				this.#discardCandidate();
				return null;
			case 'snapshot': {
				const image = this.#runningImage ?? this.#image({}, undefined);
				return { facts: documentFacts(image, []), delta: generationDelta(undefined, image) };
			}
			case 'read':
				return this.#readOnce(request.path, request.object);
			case 'stall':
				stallThread(request.how);
				return null;
		}
	}

	#image(document: Document, plan: Plan | undefined, places?: StepPlaces, forced?: number): DocumentImage {
		return createDocumentImage(document, plan, this.#imageCache, places, forced ?? this.#runningImage?.forcedLoads);
	}

	/**
	 * Redacts diagnostics for clients of the Admin API. Clients must not learn the contents of files from which no running
	 * configuration was read.
	 */
	#reports({ remote }: ConfigInput, diagnostics: readonly Diagnostic[]): DiagnosticReport[] {
		return diagnostics.map(diagnostic => {
			const file = diagnostic.span?.source.path;
			return remote && file !== undefined && !this.#quotableFiles.has(file)
				? toWithheldReport(diagnostic)
				: toReport(diagnostic);
		});
	}

	#adapt(input: ConfigInput): CompilerReplies['adapt'] {
		const { document, diagnostics } = compile(input, this.#reader);
		const text = document && JSON.stringify(printedForm(document));
		return { document: text, diagnostics: this.#reports(input, diagnostics) };
	}

	#prepare(input: ConfigInput, { unconfigured, force }: PrepareOptions): PrepareResult {
		this.#candidateImage = undefined;
		this.#compiledLength = input.text.length;
		const compiled: CompileResult = this.#compiler.compile(input);
		const { document, plan, files, places } = compiled;
		const diagnostics = this.#reports(input, compiled.diagnostics);
		if (!document || !plan) return { result: 'refused', diagnostics };
		const forced = (this.#runningImage?.forcedLoads ?? 0) + (force ? 1 : 0);
		const image = this.#image(document, plan, places, forced);
		const currentImage = this.#runningImage ?? (unconfigured ? this.#image({}, undefined) : undefined);
		if (currentImage) {
			const reasons = restartReasons(currentImage, image, { unconfigured, servedNames: this.#servedNames });
			if (reasons.length > 0) return { result: 'restart_required', reasons, diagnostics };
		}
		if (!force && this.#runningImage && isSameDocument(this.#runningImage, image)) {
			// Line numbers in logs may have changed. A document without source text has none.
			if (!image.hasText || haveSamePlaces(this.#runningImage, image)) return { result: 'unchanged', diagnostics };
		}
		this.#candidateImage = image;
		this.#candidateFiles = files;
		return {
			result: 'swap',
			diagnostics,
			facts: documentFacts(image, files),
			delta: generationDelta(this.#runningImage, image),
		};
	}

	/** Does the same as {@link #prepare}, but discards a candidate that could not be rolled back. */
	async #prepareReversible(input: ConfigInput, options: PrepareOptions): Promise<PrepareResult> {
		const prepared = this.#prepare(input, options);
		if (prepared.result !== 'swap') return prepared;
		const irreversible = await this.#whyIrreversible(this.#candidateImage!, options.unconfigured);
		if (!irreversible) return prepared;
		this.#candidateImage = undefined;
		return irreversible;
	}

	/** Returns why the running document could not be loaded again in place of `image`; undefined if it could be. */
	async #whyIrreversible(image: DocumentImage, unconfigured: boolean): Promise<IrreversibleLoad | undefined> {
		const text = this.#runningImage ? documentJson(this.#runningImage) : '{}';
		// Compiles the document that a rollback would load, because the files that it names may have changed.
		const compiled = compile({ format: 'json', text, name: '<running>' }, this.#reader, { facts: this.#facts });
		const { document, plan } = compiled;
		const errors = plan ? await this.#startErrors(compiled) : compiled.diagnostics.filter(isErrorDiagnostic);
		if (!document || !plan || errors.length > 0) {
			return { result: 'irreversible', reasons: [], diagnostics: errors.map(toReport) };
		}
		const reasons = restartReasons(image, createDocumentImage(document, plan), {
			unconfigured,
			servedNames: this.#servedNames,
		});
		return reasons.length > 0 ? { result: 'irreversible', reasons, diagnostics: [] } : undefined;
	}

	/** Returns the errors, with their places, that would prevent a configuration that compiles from being served. */
	async #startErrors({ plan, locate }: CompileResult): Promise<readonly Diagnostic[]> {
		const { preflight } = await import('../preflight/preflight.ts');
		return locateFindings(await preflight(plan!, this.#machine), locate).filter(isErrorDiagnostic);
	}

	#discardUnlessUsable<Result extends PrepareResult | EditRefused>(prepared: Result): Result {
		if (prepared.result !== 'swap' && prepared.result !== 'unchanged') this.#discardCandidate();
		return prepared;
	}

	/**
	 * Discards the candidate. After a long source text, also discards the compiler's memory of it, which is many times as large as
	 * the text.
	 */
	#discardCandidate(): void {
		this.#candidateImage = undefined;
		if (this.#compiledLength < LONG_TEXT_CHARACTERS) return;
		this.#compiler = createCompiler(this.#reader, { places: true, facts: this.#facts });
		this.#compiledLength = 0;
	}

	#edit(edit: ConfigEdit, options: PrepareOptions): PrepareResult | EditRefused {
		this.#candidateImage = undefined;
		const input = editedDocument(this.#runningImage?.document ?? {}, edit, path => this.#etag(path));
		return 'result' in input ? input : this.#prepare(input, options);
	}

	async #preview(input: ConfigInput, options: PrepareOptions): Promise<CompilerReplies['preview']> {
		try {
			const prepared = await (options.reversible
				? this.#prepareReversible(input, options)
				: this.#prepare(input, options));
			const preview = await this.#previewOf(input, prepared, options.compares === true);
			return { preview, ...(prepared.result === 'swap' && { facts: prepared.facts }) };
		} finally {
			this.#discardCandidate();
		}
	}

	async #previewOf(input: ConfigInput, prepared: PrepareResult, compares: boolean): Promise<LoadPreview> {
		const { result, diagnostics } = prepared;
		if (result === 'refused' || result === 'irreversible') return prepared;
		const compiled = this.#compiler.compile(input);
		if (result === 'swap') {
			const errors = await this.#startErrors(compiled);
			if (errors.length > 0)
				return { result: 'refused', diagnostics: [...this.#reports(input, errors), ...diagnostics] };
		}
		const newDocument = compiled.document;
		const oldDocument = this.#runningImage?.document ?? {};
		const changes = documentDifference(
			oldDocument,
			newDocument,
			redactSecrets(oldDocument),
			redactSecrets(newDocument),
		);
		const diff = compares && newDocument ? await this.#compareMeaning(oldDocument, newDocument) : undefined;
		return result === 'restart_required'
			? { result, diagnostics, reasons: prepared.reasons, changes, diff }
			: { result, diagnostics, changes, diff };
	}

	async #compareMeaning(oldDocument: Document, newDocument: Document): Promise<MeaningDifference> {
		const { meaningDifference } = await import('./meaning-difference.ts');
		return meaningDifference(oldDocument, newDocument, this.#machine.workingDirectory);
	}

	#readOnce(subpath: readonly string[], object: string | undefined): CompilerReplies['read'] {
		const image = this.#runningImage;
		if (!image) return this.#answerOf(subpath, object);
		const key = JSON.stringify([object, ...subpath]);
		if (this.#lastReading?.image !== image || this.#lastReading.key !== key) {
			this.#lastReading = { image, key, answer: this.#answerOf(subpath, object) };
		}
		return this.#lastReading.answer;
	}

	#answerOf(subpath: readonly string[], object: string | undefined): CompilerReplies['read'] {
		const runningImage = this.#runningImage;
		const document: unknown = runningImage?.document ?? {};
		const base = object === undefined ? [] : pathOfId(document, object);
		if (!base) return { json: 'null', etag: this.#etagOf(['@id', object!, ...subpath], 'null') };
		const path = [...base, ...subpath];
		if (runningImage && this.#redacted?.image !== runningImage) {
			this.#redacted = { image: runningImage, value: redactSecrets(runningImage.document) };
		}
		const json = JSON.stringify(valueAtPath(runningImage ? this.#redacted?.value : document, path)) ?? 'null';
		return { json: json.length < LONG_READING_CHARACTERS ? json : sharedText(`${json}\n`), etag: this.#etag(path) };
	}

	/** Returns the Etag of a path in the running document. */
	#etag(path: readonly string[]): string {
		return this.#etagOf(path, JSON.stringify(valueAtPath(this.#runningImage?.document ?? {}, path)) ?? 'null');
	}

	#etagOf(path: readonly string[], valueJson: string): string {
		const pointer = `/${path.map(segment => encodeURIComponent(segment)).join('/')}`;
		const hash = createHmac('sha256', this.#etagKey).update(valueJson).digest('hex').slice(0, 32);
		return `"${pointer} ${hash}"`;
	}
}

function isErrorDiagnostic({ severity }: Diagnostic): boolean {
	return severity === 'error';
}

/** Encodes a string as UTF-8 in shared memory. */
function sharedText(text: string): SharedArrayBuffer {
	const memory = new SharedArrayBuffer(Buffer.byteLength(text));
	Buffer.from(memory).write(text);
	return memory;
}

/** Encodes a document as UTF-8 JSON. */
function documentBytes(image: DocumentImage): ArrayBuffer {
	const text = documentJson(image);
	const bytes = new ArrayBuffer(Buffer.byteLength(text));
	Buffer.from(bytes).write(text);
	return bytes;
}
