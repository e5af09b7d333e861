/** The handler `files`: maps a request to an open file and answers with it. */
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { compileRoot } from '../../../codegen/context/file-root.ts';
import { type BodySource, UnsentBody } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { FileError, type FileReader, type OpenFile } from '../../../exchange/leases.ts';
import type { CompileContext, Template } from '../../contract/compile-context.ts';
import { evaluatePreconditions, rangeApplies, type Validators } from '../../representations/conditional.ts';
import { contentType } from '../../representations/content-type.ts';
import { createMultipartBody, formatContentRange, parseRange } from '../../representations/ranges.ts';
import { compileBrowse, type FolderLister, type HiddenEntryTest } from './browse/browse-handler.ts';
import { type FileFacts, FileFactsCache } from './file-facts.ts';
import { type FilePath, parseFilePath } from './file-path.ts';
import type { FilesStep } from './file-server.ts';
import { compileHiddenTest, escapeGlob, type HiddenTest, hasWildcard, mayHideBelow } from './hidden.ts';
import { openSidecar, readSidecarTag, type SidecarCoding } from './precompressed.ts';

const DEFAULT_INDEX_NAMES = ['index.html', 'index.txt'];

/** A compiled `files` step. */
interface CompiledFileServer {
	readonly reader: FileReader;
	readonly next: Handler;
	readonly passesMissingOn: boolean;
	readonly followSymlinks: boolean;
	readonly redirectsToCanonical: boolean;
	/** True if a path with a trailing slash may name a file. */
	readonly ignoresTrailingSlash: boolean;
	readonly indexNames: readonly Template[];
	readonly statusOf: ((x: Exchange) => number) | undefined;
	readonly rootOf: (x: Exchange) => string;
	readonly isHidden: HiddenFileTest;
	/** True if a pattern of `hide` contains placeholders, so that the hidden files depend on the request. */
	readonly hidesPerRequest: boolean;
	readonly factsCache: FileFactsCache;
	readonly listFolder: FolderLister | undefined;
	/** Codings of precompressed sidecars; empty if precompressed files are not used. */
	readonly sidecarCodings: readonly SidecarCoding[];
	readonly tagFileExtensions: readonly string[];
}

type HiddenFileTest = (x: Exchange, root: string, path: string, file: FileLocation) => boolean;

/** The location of a file, with links resolved. */
type FileLocation = Pick<OpenFile, 'path' | 'relativePath' | 'noLinkFollowed'>;

/** The root and path by which one request's file is looked up. */
interface FileLookup {
	readonly root: string;
	readonly requestedPath: FilePath;
}

export function compileFilesStep(step: FilesStep, cx: CompileContext, next: Handler): Handler {
	const reader = cx.lease('files', {});
	const { isHidden: isHiddenFile, isPerRequest } = compileHiddenFileTest(step.hide ?? [], cx, reader);
	const server: CompiledFileServer = {
		reader,
		next,
		passesMissingOn: step.pass_thru === true,
		followSymlinks: step.follow_symlinks === true,
		redirectsToCanonical: step.canonical_uris !== false,
		ignoresTrailingSlash: step.trailing_slash === 'ignored',
		indexNames: (step.index ?? DEFAULT_INDEX_NAMES).map(name => cx.template(name, 'empty')),
		statusOf: compileStatus(step.status, cx),
		rootOf: compileRoot(step.root, cx),
		isHidden: isHiddenFile,
		hidesPerRequest: isPerRequest,
		factsCache: new FileFactsCache(),
		listFolder:
			step.browse &&
			compileBrowse(
				step.browse,
				step.root,
				step.follow_symlinks === true,
				reader,
				compileHiddenEntryTest(isHiddenFile),
				cx,
			),
		sidecarCodings: step.precompressed ?? [],
		tagFileExtensions: step.etag_file_extensions ?? [],
	};
	const { stepNumber } = cx;
	return x => {
		// The answering handler is recorded before serving, which may fail. A later handler that answers overwrites the record.
		x.markAnswered('files', stepNumber);
		return serveFile(server, x);
	};
}

function compileStatus(status: number | string | undefined, cx: CompileContext): ((x: Exchange) => number) | undefined {
	if (status === undefined) return undefined;
	if (typeof status === 'number') return () => status;
	const template = cx.template(status, 'empty');
	const parseStatus = (text: string): number | undefined => (/^[2-5]\d\d$/.test(text) ? Number(text) : undefined);
	if (template.constant !== undefined) {
		const constant = parseStatus(template.constant);
		if (constant !== undefined) return () => constant;
		// An invalid literal is rejected now. The value of an environment variable may differ on the machine that runs the server, so
		// it is checked again for each request.
		if (!status.includes('{')) return cx.refuse(`\`${status}\` is not a status: it must be from 200 to 599.`);
	}
	return x => {
		const statusText = template.render(x);
		const value = parseStatus(statusText);
		if (value === undefined) throw new HttpError(500, `file_server: \`${statusText}\` is not a status`);
		return value;
	};
}

function compileHiddenFileTest(
	patterns: readonly string[],
	cx: CompileContext,
	reader: FileReader,
): { readonly isHidden: HiddenFileTest; readonly isPerRequest: boolean } {
	const templates = patterns.map(pattern => cx.template(pattern, 'empty', () => escapeGlob));
	const constantPatterns: string[] = [];
	const requestTemplates: Template[] = [];
	for (const template of templates) {
		if (template.constant === undefined) requestTemplates.push(template);
		else {
			const pattern = absolutePattern(template.constant);
			constantPatterns.push(pattern);
			// Patterns are also compared with paths in which links are resolved, so the resolved form of a path is added as a pattern.
			const isLiteralPath = pattern.startsWith('/') && !hasWildcard(pattern);
			const realPath = isLiteralPath ? reader.realPath?.(pattern) : undefined;
			if (realPath !== undefined && realPath !== pattern) constantPatterns.push(realPath);
		}
	}
	if (templates.length === 0) return { isHidden: () => false, isPerRequest: false };
	const isHiddenAlways = compileHiddenTest(constantPatterns);
	let lastRoot = '';
	let lastResult = true;
	const canHideBelow = (root: string): boolean => {
		if (root !== lastRoot) {
			lastRoot = root;
			lastResult = mayHideBelow(constantPatterns, root);
		}
		return lastResult;
	};
	const isHiddenOrLinksToHidden = (isHidden: HiddenTest, root: string, path: string, file: FileLocation): boolean => {
		const absolutePath = root === '/' ? path : root + path;
		if (isHidden(absolutePath, path)) return true;
		if (file.noLinkFollowed || file.path === absolutePath) return false;
		// A link whose name is not hidden may lead to a hidden file.
		return isHidden(file.path, file.relativePath ?? basename(file.path));
	};
	if (requestTemplates.length === 0) {
		return {
			// Skips the test if no pattern can match below the root: often the only pattern is the path of the configuration file, which is
			// always hidden but usually outside the root.
			isHidden: (_, root, path, file) =>
				!(file.noLinkFollowed && !canHideBelow(root)) && isHiddenOrLinksToHidden(isHiddenAlways, root, path, file),
			isPerRequest: false,
		};
	}
	const compileRequestTest = (x: Exchange): HiddenTest =>
		compileHiddenTest(requestTemplates.map(template => absolutePattern(template.render(x))).filter(Boolean));
	const isHiddenForRequest: HiddenFileTest = (x, root, path, file) =>
		isHiddenOrLinksToHidden(isHiddenAlways, root, path, file) ||
		isHiddenOrLinksToHidden(compileRequestTest(x), root, path, file);
	return { isHidden: isHiddenForRequest, isPerRequest: true };
}

/** Returns a pattern for comparison with absolute paths. A relative path is resolved against the working directory. */
function absolutePattern(pattern: string): string {
	return pattern.includes('/') && !pattern.startsWith('/') ? resolve(pattern) : pattern;
}

/**
 * Reports whether a file is hidden. Unless the result depends on the request, it is cached with the open file, whose path never
 * changes.
 */
function isFileHidden(server: CompiledFileServer, x: Exchange, root: string, path: string, file: OpenFile): boolean {
	if (server.hidesPerRequest || file.source === 'disk') return server.isHidden(x, root, path, file);
	const facts = server.factsCache.get(file);
	facts.isHidden ??= server.isHidden(x, root, path, file);
	return facts.isHidden;
}

/** Returns the test that decides which entries a listing omits: hidden files, and links to hidden files. */
function compileHiddenEntryTest(isHidden: HiddenFileTest): HiddenEntryTest {
	return (x, { root, path }, { name, realPath: resolvedPath }) => {
		const pathBelowRoot = `${path}/${name}`;
		const absolutePath = root === '/' ? pathBelowRoot : root + pathBelowRoot;
		const realPathBelowRoot = resolvedPath?.startsWith(`${root}/`) ? resolvedPath.slice(root.length) : undefined;
		return isHidden(x, root, pathBelowRoot, {
			path: resolvedPath ?? absolutePath,
			relativePath: resolvedPath === undefined ? pathBelowRoot : realPathBelowRoot,
		});
	};
}

function basename(path: string): string {
	return path.slice(path.lastIndexOf('/') + 1);
}

function serveFile(server: CompiledFileServer, x: Exchange): void | Promise<void> {
	const requestedPath = parseFilePath(x.request.path);
	if (requestedPath === 'malformed') throw new HttpError(400, 'file_server: the path is malformed');
	if (requestedPath === 'encoded-slash') return answerMissing(server, x);
	const lookup: FileLookup = { root: server.rootOf(x), requestedPath };
	if (requestedPath.path === '') return tryIndex(server, x, lookup, 0);
	return openAndServe(server, x, lookup, requestedPath.path, -1);
}

/**
 * Opens a path and serves it. `indexPosition` is the position of the path's name in the list of index names, or −1 if
 * the path is the requested path itself.
 */
function openAndServe(
	server: CompiledFileServer,
	x: Exchange,
	lookup: FileLookup,
	path: string,
	indexPosition: number,
): void | Promise<void> {
	let file: OpenFile | Promise<OpenFile>;
	try {
		file = server.reader.open(lookup.root, path, server.followSymlinks);
	} catch (error) {
		return handleOpenError(server, x, lookup, indexPosition, error);
	}
	if (file instanceof Promise) {
		return file.then(
			opened => serveOpened(server, x, lookup, path, indexPosition, opened),
			error => handleOpenError(server, x, lookup, indexPosition, error),
		);
	}
	return serveOpened(server, x, lookup, path, indexPosition, file);
}

function handleOpenError(
	server: CompiledFileServer,
	x: Exchange,
	lookup: FileLookup,
	indexPosition: number,
	error: unknown,
): void | Promise<void> {
	if (!(error instanceof FileError)) throw error;
	switch (error.reason) {
		case 'directory':
			return tryIndex(server, x, lookup, indexPosition + 1);
		case 'not_found':
			return indexPosition === -1
				? answerNonexistent(server, x, lookup)
				: tryIndex(server, x, lookup, indexPosition + 1);
		case 'forbidden':
			throw new HttpError(403, 'file_server: the file may not be read', { cause: error });
		case 'invalid':
			throw new HttpError(400, 'file_server: the path is malformed', { cause: error });
		case 'unavailable':
			throw unavailableError(error);
	}
}

function unavailableError(error: FileError): HttpError {
	// A random delay keeps clients that were rejected together from retrying together.
	const retryAfterSeconds = 2 + Math.floor(Math.random() * 3);
	return new HttpError(503, 'file_server: the file cannot be read now', {
		cause: error,
		headers: [['Retry-After', String(retryAfterSeconds)]],
	});
}

function tryIndex(
	server: CompiledFileServer,
	x: Exchange,
	lookup: FileLookup,
	indexPosition: number,
): void | Promise<void> {
	const indexTemplate = server.indexNames[indexPosition];
	if (indexTemplate === undefined)
		return server.listFolder ? listFolder(server, server.listFolder, x, lookup) : answerMissing(server, x);
	return openAndServe(
		server,
		x,
		lookup,
		`${lookup.requestedPath.path}/${indexTemplate.constant ?? indexTemplate.render(x)}`,
		indexPosition,
	);
}

/** Lists a folder that has no index. */
function listFolder(
	server: CompiledFileServer,
	listEntries: FolderLister,
	x: Exchange,
	{ root, requestedPath }: FileLookup,
): void | Promise<void> {
	const { path, endsWithSlash } = requestedPath;
	if (path !== '' && server.isHidden(x, root, path, { path: root === '/' ? path : root + path, relativePath: path })) {
		return answerMissing(server, x);
	}
	requireReadMethod(x);
	// Without the trailing slash, the relative links of the listing would be wrong.
	if (!endsWithSlash && isLastSegmentAsReceived(x)) return redirect(x, true);
	return listEntries(x, { root, path }).catch(error => {
		if (!(error instanceof FileError)) throw error;
		if (error.reason === 'not_found') return answerMissing(server, x);
		if (error.reason === 'unavailable') throw unavailableError(error);
		throw new HttpError(error.reason === 'forbidden' ? 403 : 400, 'file_server: the folder may not be listed', {
			cause: error,
		});
	});
}

function requireReadMethod(x: Exchange): void {
	const { method } = x.request;
	if (method === 'GET' || method === 'HEAD' || x.error !== undefined) return;
	throw new HttpError(405, `file_server: ${method} is not allowed`, { headers: [['Allow', 'GET, HEAD']] });
}

/**
 * Answers for a path that does not exist. A path that continues below a file is malformed (400). If that file is hidden or cannot
 * be opened, the answer is the usual 404, which reveals nothing about the file.
 */
function answerNonexistent(
	server: CompiledFileServer,
	x: Exchange,
	{ root, requestedPath }: FileLookup,
): void | Promise<void> {
	const ancestorFilePath = findFileAbove(server, root, requestedPath.path);
	if (ancestorFilePath === undefined) return answerMissing(server, x);
	const answerForFileAbove = (openFile: OpenFile): void | Promise<void> => {
		const isVisible = !isFileHidden(server, x, root, ancestorFilePath, openFile);
		openFile.close();
		if (!isVisible) return answerMissing(server, x);
		throw new HttpError(400, 'file_server: the path leads on below a file');
	};
	const onOpenError = (error: unknown): void | Promise<void> => {
		if (error instanceof FileError) return answerMissing(server, x);
		throw error;
	};
	let openedFile: OpenFile | Promise<OpenFile>;
	try {
		openedFile = server.reader.open(root, ancestorFilePath, server.followSymlinks);
	} catch (error) {
		return onOpenError(error);
	}
	return openedFile instanceof Promise
		? openedFile.then(answerForFileAbove, onOpenError)
		: answerForFileAbove(openedFile);
}

/** Returns the longest existing prefix of `path`, without `path` itself, if it is a file; otherwise undefined. */
function findFileAbove({ reader }: CompiledFileServer, root: string, path: string): string | undefined {
	const segmentEnds: number[] = [];
	for (let end = path.indexOf('/', 1); end !== -1; end = path.indexOf('/', end + 1)) segmentEnds.push(end);
	// Follows even links that lead out of the root, because they are checked when the file is opened.
	const kindAt = (segmentIndex: number) => reader.kind(root, path.slice(0, segmentEnds[segmentIndex]), true);
	let firstMissing = segmentEnds.length;
	try {
		// The parent folder usually exists. Otherwise, a binary search finds the first missing folder, because a client may send
		// thousands of segments.
		for (
			let lastExisting = -1, middle = firstMissing - 1;
			lastExisting + 1 < firstMissing;
			middle = (lastExisting + firstMissing) >> 1
		) {
			const kind = kindAt(middle);
			if (kind === 'file') return path.slice(0, segmentEnds[middle]);
			if (kind === undefined) firstMissing = middle;
			else lastExisting = middle;
		}
	} catch (error) {
		if (!(error instanceof FileError)) throw error;
	}
	return undefined;
}

function answerMissing(server: CompiledFileServer, x: Exchange): void | Promise<void> {
	if (server.passesMissingOn) {
		x.answeredBy = '';
		return server.next(x);
	}
	throw new HttpError(404, 'file_server: there is no such file');
}

function serveOpened(
	server: CompiledFileServer,
	x: Exchange,
	lookup: FileLookup,
	path: string,
	indexPosition: number,
	file: OpenFile,
): void | Promise<void> {
	let isFileInUse = false;
	try {
		if (isFileHidden(server, x, lookup.root, path, file)) {
			return indexPosition === -1 ? answerMissing(server, x) : tryIndex(server, x, lookup, indexPosition + 1);
		}
		requireReadMethod(x);
		const { endsWithSlash } = lookup.requestedPath;
		if (
			hadTrailingSlash(x, endsWithSlash) !== (indexPosition !== -1) &&
			server.redirectsToCanonical &&
			x.error === undefined
		) {
			if (isLastSegmentAsReceived(x)) {
				redirect(x, indexPosition !== -1);
				return;
			}
		}
		// If the path of a page ended with a slash, the relative links in the page would be wrong.
		if (indexPosition === -1 && endsWithSlash && !server.ignoresTrailingSlash) return answerMissing(server, x);
		const sidecar =
			server.sidecarCodings.length > 0
				? openSidecar(x, server.reader, lookup.root, path, server.followSymlinks, server.sidecarCodings)
				: undefined;
		if (sidecar) {
			let isSidecarInUse = false;
			try {
				isSidecarInUse = fillResponse(server, x, sidecar.file, file.path, sidecar.coding);
			} finally {
				if (!isSidecarInUse) sidecar.file.close();
			}
		} else isFileInUse = fillResponse(server, x, file, file.path, undefined);
	} catch (error) {
		throw error instanceof FileError ? unavailableError(error) : error;
	} finally {
		if (!isFileInUse) file.close();
	}
}

/** Reports whether the path that the client sent ends with a slash. The client resolves relative links against that path. */
function hadTrailingSlash(x: Exchange, endsWithSlash: boolean): boolean {
	const { path } = x.received;
	return path === x.request.path ? endsWithSlash : path.charCodeAt(path.length - 1) === 47;
}

/**
 * Reports whether a redirect may add or remove the trailing slash: the last segment of the path must be as the client sent it.
 * After a rewrite, the slash that the client sent says nothing about the new last segment. A path that ends in a dot segment has no
 * slash to remove, so redirecting would loop.
 */
function isLastSegmentAsReceived(x: Exchange): boolean {
	const segment = lastSegment(x.received.path);
	return segment === lastSegment(x.request.path) && !/^(?:\.|%2e){1,2}$/i.test(segment);
}

function lastSegment(path: string): string {
	let end = path.length;
	while (end > 0 && path[end - 1] === '/') end -= 1;
	return path.slice(path.lastIndexOf('/', end - 1) + 1, end);
}

function stripOuterSlashes(path: string): string {
	let start = 0;
	let end = path.length;
	while (path[start] === '/') start++;
	while (end > start && path[end - 1] === '/') end--;
	return path.slice(start, end);
}

/**
 * Redirects to the received path with or without its slash. The target always stays on this host: browsers interpret `//x` and
 * `/\x` as another host.
 */
function redirect(x: Exchange, withSlash: boolean): void {
	const path = stripOuterSlashes(x.received.path.replaceAll('\\', '%5C'));
	const query = x.received.query ? `?${x.received.query}` : '';
	x.response.status = 308;
	x.response.headers.set('Location', `/${path}${withSlash && path !== '' ? '/' : ''}${query}`);
	x.response.body = null;
}

/**
 * Fills the response. Returns true if the response's body will close the file, false if the caller must do so. `requestedFile` is
 * the path of the requested file; `file` may be a sidecar of it.
 */
function fillResponse(
	server: CompiledFileServer,
	x: Exchange,
	file: OpenFile,
	requestedFile: string,
	coding: SidecarCoding | undefined,
): boolean {
	const { request, response } = x;
	const headers = response.headers;
	const now = x.now();
	const status = server.statusOf?.(x) ?? x.error?.status ?? 200;
	const facts = server.factsCache.get(file);
	const fileValidators = validatorsOf(
		facts,
		now,
		server.tagFileExtensions.length > 0 ? readSidecarTag(server.reader, file, server.tagFileExtensions) : undefined,
	);
	const validators: Validators = {
		etag: headers.get('etag') ?? fileValidators.etag,
		modified: fileValidators.modified,
	};
	const isOk = status === 200;

	const precondition = isOk ? evaluatePreconditions(request.headers, validators, now) : 'proceed';
	if (precondition === 'failed') {
		response.status = 412;
		response.body = null;
		return false;
	}
	const mediaType =
		headers.get('content-type') ?? (coding === undefined ? facts.mediaType : contentType(requestedFile));
	const rangeField =
		isOk && precondition === 'proceed' && request.method === 'GET' ? request.headers.getCombined('range') : undefined;
	const ranges =
		rangeField !== undefined && rangeApplies(request.headers, validators, now)
			? parseRange(rangeField, file.size)
			: 'ignore';

	// The bytes are read before any field is set, because reading may fail.
	let body: Uint8Array | string | BodySource | null = null;
	if (precondition === 'proceed' && ranges !== 'unsatisfiable') {
		// The method that the client sent decides: if a directive rewrote the method to HEAD, the client still expects a body.
		if (x.received.method === 'HEAD') body = new UnsentBody(file.size);
		else if (ranges === 'ignore') {
			body = file.body(0, file.size);
			x.servedFile = file;
			x.servedBody = body;
		} else if (ranges.length === 1) body = file.body(ranges[0]!.start, ranges[0]!.end);
		else {
			const boundary = randomUUID().replaceAll('-', '');
			body = createMultipartBody(
				ranges,
				file.size,
				mediaType,
				boundary,
				part => file.body(part.start, part.end, true),
				() => file.close(),
			);
			headers.set('Content-Type', `multipart/byteranges; boundary=${boundary}`);
		}
	}

	x.fileSource = file.source;
	headers.add('Vary', 'Accept-Encoding');
	if (fileValidators.etag !== undefined && !headers.has('etag')) headers.add('Etag', fileValidators.etag);
	if (fileValidators.modified !== undefined) headers.set('Last-Modified', formatDate(fileValidators.modified, facts));
	response.body = body;
	if (precondition === 'not-modified') {
		response.status = 304;
		return false;
	}
	if (coding !== undefined) headers.set('Content-Encoding', coding);
	if (isOk) headers.set('Accept-Ranges', 'bytes');
	if (ranges === 'unsatisfiable') {
		response.status = 416;
		headers.set('Content-Range', `bytes */${file.size}`);
		return false;
	}
	if (mediaType !== undefined && !headers.has('content-type')) headers.add('Content-Type', mediaType);
	if (ranges === 'ignore') response.status = status;
	else {
		response.status = 206;
		if (ranges.length === 1) headers.set('Content-Range', formatContentRange(ranges[0]!, file.size));
	}
	return x.received.method !== 'HEAD';
}

/** Returns the entity tag and modification date with which a file is sent. `tagFromFile` is the tag in an entity tag file. */
function validatorsOf(
	{ etag, modifiedSeconds: seconds }: FileFacts,
	now: number,
	tagFromFile: string | undefined,
): Validators {
	// A future date must not be sent (RFC 9110 §8.8.2.1).
	const modified = seconds === undefined ? undefined : Math.min(seconds, Math.floor(now / 1000));
	return { etag: tagFromFile ?? etag, modified };
}

function formatDate(modified: number, { modifiedSeconds: seconds, httpDate: date }: FileFacts): string {
	return modified === seconds ? date : new Date(modified * 1000).toUTCString();
}
