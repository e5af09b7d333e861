/** Keeps the running document (a compiled configuration) and the candidate that a load may replace it with. */
import { createHmac } from 'node:crypto';
import type { HostFacts } from '../../compiler/codegen/placeholders/placeholder.ts';
import type { Plan } from '../../compiler/codegen/plan/plan.ts';
import { type CompileResult, compile, createCompiler } from '../../compiler/compiler.ts';
import type { Diagnostic, DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import { toReport, toWithheldReport } from '../../compiler/diagnostics/diagnostic-report.ts';
import { sortDiagnostics } from '../../compiler/diagnostics/sort-diagnostics.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Document } from '../../compiler/document/document.ts';
import type { CompilerSession } from '../../compiler/incremental/compiler-session.ts';
import { missingRootWarnings } from '../../compiler/lint/missing-roots.ts';
import type { StepPlaces } from '../../compiler/lower/step-places.ts';
import { documentDifference } from '../../compiler/schema/difference.ts';
import { printedForm } from '../../compiler/schema/printed-form.ts';
import { redactSecrets } from '../../compiler/schema/secrets.ts';
import type { Reader } from '../../compiler/source/reader.ts';
import { locateFindings, type TargetMachine } from '../preflight/finding.ts';
import { hostFacts } from '../threads/host-facts.ts';
import { stallThread } from '../threads/stop-answering.ts';
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
import type { CompilerReplies, CompilerRequest, PrepareOptions, PrepareResult } from './compiler-messages.ts';
import { diskReader } from './disk-reader.ts';
import { editedDocument, pathOfId, valueAtPath } from './edited-document.ts';
import type { ConfigEdit, EditRefused, IrreversibleLoad, LoadPreview, MeaningDifference } from './load-results.ts';
import { restartReasons } from './restart-reasons.ts';

/** The parameters of {@link Compilation}. */
export interface CompilationStart {
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
	/** Key with which Etags are computed, so that an Etag reveals nothing about secrets in the value that it identifies. */
	readonly etagKey: Uint8Array;
	/** What another compile thread knew about the running document; undefined if no document runs, or if the thread has died. */
	readonly running?: RunningDocument | undefined;
	/** UTF-8 JSON of the running document, if nothing else is known about it because the previous compile thread died. */
	readonly runningJson?: ArrayBuffer | undefined;
	/** The host names that the process has served over TLS so far. */
	readonly served?: readonly string[] | undefined;
}

/** What a compilation knows about the running document. It is passed between threads, so it consists of cloneable data. */
export interface RunningDocument {
	readonly image: DocumentImage;
	/** The files that diagnostics for clients may quote. */
	readonly quotableFiles: ReadonlySet<string>;
}

/** If a text with at least this many characters is not going to be served, what the compiler session keeps of it is discarded. */
const LONG_TEXT_CHARACTERS = 1024 * 1024;

/** Replies with at least this many characters are encoded once and shared between threads instead of copied. */
const LONG_REPLY_CHARACTERS = 64 * 1024;

type Answer = CompilerReplies[CompilerRequest['op']];

/** The running document and the candidate of a load. Answers requests about both. */
export class Compilation {
	readonly #reader: Reader;
	readonly #targetMachine: TargetMachine;
	readonly #hostFacts: HostFacts;
	readonly #etagKey: Uint8Array;
	/**
	 * Compiles configurations that are to be loaded. `adapt` does not use it, because an unrelated configuration would displace what
	 * this session remembers.
	 */
	#compiler: CompilerSession;
	/** Number of characters of the source text that {@link #compiler} compiled last. */
	#compiledChars = 0;
	readonly #imageCache = new DocumentImageCache();
	/** All host names that the process has served over TLS. */
	readonly #servedNames: Set<string>;
	#runningImage: DocumentImage | undefined;
	#candidateImage: DocumentImage | undefined;
	/** The files of all documents that have run. Diagnostics for clients may quote these files. */
	#quotableFiles: ReadonlySet<string> = new Set();
	#candidateFiles: readonly string[] = [];
	#redactedDocument: { readonly image: DocumentImage; readonly value: unknown } | undefined;
	/** The last answer to `read`, so that polling a large document does not serialize it each time. */
	#lastReading:
		| { readonly image: DocumentImage; readonly key: string; readonly answer: CompilerReplies['read'] }
		| undefined;

	constructor({ workingDirectory, environment, etagKey, running, runningJson, served }: CompilationStart) {
		this.#reader = diskReader(workingDirectory, environment);
		this.#etagKey = etagKey;
		this.#servedNames = new Set(served);
		this.#targetMachine = { workingDirectory, environment };
		this.#hostFacts = hostFacts(workingDirectory, environment);
		this.#compiler = createCompiler(this.#reader, { places: true, facts: this.#hostFacts });
		if (running) {
			this.#runningImage = running.image;
			this.#quotableFiles = running.quotableFiles;
		} else if (runningJson) {
			const documentText = Buffer.from(runningJson).toString();
			const { document, plan } = this.#compiler.compile({ format: 'json', text: documentText, name: '<running>' });
			// The contents of the files when this document was loaded are no longer known.
			if (document) this.#runningImage = { ...this.#createImage(document, plan), filesDigest: undefined };
		}
	}

	/** What is known about the running document; undefined if no document runs. */
	get running(): RunningDocument | undefined {
		return this.#runningImage && { image: this.#runningImage, quotableFiles: this.#quotableFiles };
	}

	/** Answers a request; see {@link CompilerReplies}. */
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
				// If this thread replaces one that died after compiling the candidate, there is no candidate, and the load must fail.
				if (!this.#candidateImage) throw new Error('The compile thread died during the load.');
				this.#runningImage = this.#candidateImage;
				this.#quotableFiles = this.#quotableFiles.union(new Set(this.#candidateFiles));
				for (const name of this.#runningImage.certificates?.names ?? []) this.#servedNames.add(name);
				this.#candidateImage = undefined;
				return encodeDocument(this.#runningImage);
			case 'discard':
				this.#discardCandidate();
				return null;
			case 'snapshot': {
				const image = this.#runningImage ?? this.#createImage({}, undefined);
				return { facts: documentFacts(image, []), delta: generationDelta(undefined, image) };
			}
			case 'read':
				return this.#readCached(request.path, request.object);
			case 'stall':
				stallThread(request.how);
				return null;
		}
	}

	#createImage(document: Document, plan: Plan | undefined, places?: StepPlaces, forced?: number): DocumentImage {
		return createDocumentImage(document, plan, this.#imageCache, places, forced ?? this.#runningImage?.forcedLoads);
	}

	/**
	 * Redacts diagnostics for clients of the Admin API. Clients must not learn the contents of files from which no running
	 * configuration was read.
	 */
	#toReports({ remote }: ConfigInput, diagnostics: readonly Diagnostic[]): DiagnosticReport[] {
		return diagnostics.map(diagnostic => {
			const file = diagnostic.span?.source.path;
			return remote && file !== undefined && !this.#quotableFiles.has(file)
				? toWithheldReport(diagnostic)
				: toReport(diagnostic);
		});
	}

	#adapt(input: ConfigInput): CompilerReplies['adapt'] {
		const { document, diagnostics } = compile(input, this.#reader);
		const documentText = document && JSON.stringify(printedForm(document));
		return { document: documentText, diagnostics: this.#toReports(input, diagnostics) };
	}

	#prepare(input: ConfigInput, { unconfigured, force }: PrepareOptions): PrepareResult {
		this.#candidateImage = undefined;
		this.#compiledChars = input.text.length;
		const compileResult: CompileResult = this.#compiler.compile(input);
		const { document, plan, files, places, locate } = compileResult;
		if (!document || !plan)
			return { result: 'refused', diagnostics: this.#toReports(input, compileResult.diagnostics) };
		const warnings = missingRootWarnings(input, document, locate, this.#reader);
		const diagnostics = this.#toReports(input, sortDiagnostics([...compileResult.diagnostics, ...warnings]));
		const forcedLoads = (this.#runningImage?.forcedLoads ?? 0) + (force ? 1 : 0);
		const image = this.#createImage(document, plan, places, forcedLoads);
		const currentImage = this.#runningImage ?? (unconfigured ? this.#createImage({}, undefined) : undefined);
		if (currentImage) {
			const reasons = restartReasons(currentImage, image, { unconfigured, servedNames: this.#servedNames });
			if (reasons.length > 0) return { result: 'restart_required', reasons, diagnostics };
		}
		if (!force && this.#runningImage && isSameDocument(this.#runningImage, image)) {
			// Documents with equal content may have different line numbers, which logs show. A document without source text has none.
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
		const prepareResult = this.#prepare(input, options);
		if (prepareResult.result !== 'swap') return prepareResult;
		const irreversibleLoad = await this.#findIrreversibleLoad(this.#candidateImage!, options.unconfigured);
		if (!irreversibleLoad) return prepareResult;
		this.#candidateImage = undefined;
		return irreversibleLoad;
	}

	/** Returns why a rollback from `image` to the running document would fail; undefined if it would succeed. */
	async #findIrreversibleLoad(image: DocumentImage, unconfigured: boolean): Promise<IrreversibleLoad | undefined> {
		const documentText = this.#runningImage ? documentJson(this.#runningImage) : '{}';
		// Compiles the document that a rollback would load, because the files that it names may have changed.
		const compileResult = compile({ format: 'json', text: documentText, name: '<running>' }, this.#reader, {
			facts: this.#hostFacts,
		});
		const { document, plan } = compileResult;
		const errors = plan
			? await this.#findStartErrors(compileResult)
			: compileResult.diagnostics.filter(isErrorDiagnostic);
		if (!document || !plan || errors.length > 0) {
			return { result: 'irreversible', reasons: [], diagnostics: errors.map(toReport) };
		}
		const reasons = restartReasons(image, createDocumentImage(document, plan), {
			unconfigured,
			servedNames: this.#servedNames,
		});
		return reasons.length > 0 ? { result: 'irreversible', reasons, diagnostics: [] } : undefined;
	}

	/** Returns the errors, with their source positions, that prevent a configuration from being served although it compiles. */
	async #findStartErrors({ plan, locate }: CompileResult): Promise<readonly Diagnostic[]> {
		const { preflight } = await import('../preflight/preflight.ts');
		return locateFindings(await preflight(plan!, this.#targetMachine), locate).filter(isErrorDiagnostic);
	}

	#discardUnlessUsable<Result extends PrepareResult | EditRefused>(prepareResult: Result): Result {
		if (prepareResult.result !== 'swap' && prepareResult.result !== 'unchanged') this.#discardCandidate();
		return prepareResult;
	}

	/**
	 * Discards the candidate. After a long source text, also discards the compiler's memory of it, which is many times as large as
	 * the text.
	 */
	#discardCandidate(): void {
		this.#candidateImage = undefined;
		if (this.#compiledChars < LONG_TEXT_CHARACTERS) return;
		this.#compiler = createCompiler(this.#reader, { places: true, facts: this.#hostFacts });
		this.#compiledChars = 0;
	}

	#edit(edit: ConfigEdit, options: PrepareOptions): PrepareResult | EditRefused {
		this.#candidateImage = undefined;
		const input = editedDocument(this.#runningImage?.document ?? {}, edit, path => this.#currentEtag(path));
		return 'result' in input ? input : this.#prepare(input, options);
	}

	async #preview(input: ConfigInput, options: PrepareOptions): Promise<CompilerReplies['preview']> {
		try {
			const prepareResult = await (options.reversible
				? this.#prepareReversible(input, options)
				: this.#prepare(input, options));
			const preview = await this.#createPreview(input, prepareResult, options.compares === true);
			return { preview, ...(prepareResult.result === 'swap' && { facts: prepareResult.facts }) };
		} finally {
			this.#discardCandidate();
		}
	}

	async #createPreview(input: ConfigInput, prepareResult: PrepareResult, shouldCompare: boolean): Promise<LoadPreview> {
		const { result, diagnostics } = prepareResult;
		if (result === 'refused' || result === 'irreversible') return prepareResult;
		const compileResult = this.#compiler.compile(input);
		if (result === 'swap') {
			const errors = await this.#findStartErrors(compileResult);
			if (errors.length > 0)
				return { result: 'refused', diagnostics: [...this.#toReports(input, errors), ...diagnostics] };
		}
		const newDocument = compileResult.document;
		const oldDocument = this.#runningImage?.document ?? {};
		const changes = documentDifference(
			oldDocument,
			newDocument,
			redactSecrets(oldDocument),
			redactSecrets(newDocument),
		);
		const diff = shouldCompare && newDocument ? await this.#compareMeaning(oldDocument, newDocument) : undefined;
		return result === 'restart_required'
			? { result, diagnostics, reasons: prepareResult.reasons, changes, diff }
			: { result, diagnostics, changes, diff };
	}

	async #compareMeaning(oldDocument: Document, newDocument: Document): Promise<MeaningDifference> {
		const { meaningDifference } = await import('./meaning-difference.ts');
		return meaningDifference(oldDocument, newDocument, this.#targetMachine.workingDirectory);
	}

	#readCached(subpath: readonly string[], object: string | undefined): CompilerReplies['read'] {
		const image = this.#runningImage;
		if (!image) return this.#createReading(subpath, object);
		const key = JSON.stringify([object, ...subpath]);
		if (this.#lastReading?.image !== image || this.#lastReading.key !== key) {
			this.#lastReading = { image, key, answer: this.#createReading(subpath, object) };
		}
		return this.#lastReading.answer;
	}

	#createReading(subpath: readonly string[], object: string | undefined): CompilerReplies['read'] {
		const runningImage = this.#runningImage;
		const document: unknown = runningImage?.document ?? {};
		const basePath = object === undefined ? [] : pathOfId(document, object);
		if (!basePath) return { json: 'null', etag: this.#etagOf(['@id', object!, ...subpath], 'null') };
		const path = [...basePath, ...subpath];
		if (runningImage && this.#redactedDocument?.image !== runningImage) {
			this.#redactedDocument = { image: runningImage, value: redactSecrets(runningImage.document) };
		}
		const json = JSON.stringify(valueAtPath(runningImage ? this.#redactedDocument?.value : document, path)) ?? 'null';
		return {
			json: json.length < LONG_REPLY_CHARACTERS ? json : encodeShared(`${json}\n`),
			etag: this.#currentEtag(path),
		};
	}

	/** Returns the Etag of the value at a path of the running document. */
	#currentEtag(path: readonly string[]): string {
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
function encodeShared(text: string): SharedArrayBuffer {
	const memory = new SharedArrayBuffer(Buffer.byteLength(text));
	Buffer.from(memory).write(text);
	return memory;
}

/** Encodes a document as UTF-8 JSON. */
function encodeDocument(image: DocumentImage): ArrayBuffer {
	const documentText = documentJson(image);
	const bytes = new ArrayBuffer(Buffer.byteLength(documentText));
	Buffer.from(bytes).write(documentText);
	return bytes;
}
