/** The handler `files`: maps a request to an open file and answers with it. */
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { compileRoot } from '../../../codegen/context/file-root.ts';
import type { BodySource } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { FileError, type FileReader, type OpenFile } from '../../../exchange/leases.ts';
import type { CompileContext, Template } from '../../contract/compile-context.ts';
import { evaluatePreconditions, rangeApplies, type Validators } from '../../representations/conditional.ts';
import { contentType } from '../../representations/content-type.ts';
import { contentRange, multipartRanges, parseRange } from '../../representations/ranges.ts';
import { compileBrowse, type FolderLister, type HiddenEntryTest } from './browse/browse-handler.ts';
import { type FileFacts, FileFactsCache } from './file-facts.ts';
import { type FilePath, filePath } from './file-path.ts';
import type { FilesStep } from './file-server.ts';
import { compileHiddenTest, escapeGlob, type HiddenTest, hasWildcard, mayHideBelow } from './hidden.ts';
import { openSidecar, type SidecarCoding, sidecarTag } from './precompressed.ts';

const DEFAULT_INDEX = ['index.html', 'index.txt'];

/** Settings of one `files` step, fixed when the configuration is compiled. */
interface FileServer {
	readonly reader: FileReader;
	readonly next: Handler;
	readonly passThru: boolean;
	readonly followSymlinks: boolean;
	readonly canonical: boolean;
	/** Whether a path with a trailing slash may be a file. */
	readonly ignoresSlash: boolean;
	readonly index: readonly Template[];
	readonly status: ((x: Exchange) => number) | undefined;
	readonly root: (x: Exchange) => string;
	readonly hides: HidesFile;
	/** Whether the hidden files depend on the request. */
	readonly hidesByRequest: boolean;
	readonly facts: FileFactsCache;
	readonly browse: FolderLister | undefined;
	/** Codings of sidecars; empty to disable them. */
	readonly codings: readonly SidecarCoding[];
	readonly tagExtensions: readonly string[];
}

type HidesFile = (x: Exchange, root: string, path: string, file: Located) => boolean;

/** The location of a file, with links resolved. */
type Located = Pick<OpenFile, 'path' | 'relativePath' | 'noLinkFollowed'>;

/** The state of looking up one request's file. */
interface Lookup {
	readonly root: string;
	readonly asked: FilePath;
}

/** Compiles a `files` step. */
export function compileFiles(step: FilesStep, cx: CompileContext, next: Handler): Handler {
	const reader = cx.lease('files', {});
	const { hides: hidden, byRequest } = compileHides(step.hide ?? [], cx, reader);
	const server: FileServer = {
		reader,
		next,
		passThru: step.pass_thru === true,
		followSymlinks: step.follow_symlinks === true,
		canonical: step.canonical_uris !== false,
		ignoresSlash: step.trailing_slash === 'ignored',
		index: (step.index ?? DEFAULT_INDEX).map(name => cx.template(name, 'empty')),
		status: compileStatus(step.status, cx),
		root: compileRoot(step.root, cx),
		hides: hidden,
		hidesByRequest: byRequest,
		facts: new FileFactsCache(),
		browse:
			step.browse &&
			compileBrowse(step.browse, step.root, step.follow_symlinks === true, reader, entryHides(hidden), cx),
		codings: step.precompressed ?? [],
		tagExtensions: step.etag_file_extensions ?? [],
	};
	const { step: number } = cx;
	return x => {
		// This handler is recorded whether it answers or fails. A request that it passes on is answered by another handler.
		x.markAnswered('files', number);
		return serveFile(server, x);
	};
}

function compileStatus(status: number | string | undefined, cx: CompileContext): ((x: Exchange) => number) | undefined {
	if (status === undefined) return undefined;
	if (typeof status === 'number') return () => status;
	const template = cx.template(status, 'empty');
	const read = (text: string): number | undefined => (/^[2-5]\d\d$/.test(text) ? Number(text) : undefined);
	if (template.constant !== undefined) {
		const constant = read(template.constant);
		if (constant !== undefined) return () => constant;
		// Environment variables are known only on the machine that runs the server.
		if (!status.includes('{')) return cx.refuse(`\`${status}\` is not a status: it must be from 200 to 599.`);
	}
	return x => {
		const text = template.render(x);
		const value = read(text);
		if (value === undefined) throw new HttpError(500, `file_server: \`${text}\` is not a status`);
		return value;
	};
}

function compileHides(
	patterns: readonly string[],
	cx: CompileContext,
	reader: FileReader,
): { readonly hides: HidesFile; readonly byRequest: boolean } {
	const templates = patterns.map(pattern => cx.template(pattern, 'empty', () => escapeGlob));
	const constants: string[] = [];
	const rendered: Template[] = [];
	for (const template of templates) {
		if (template.constant === undefined) rendered.push(template);
		else {
			const pattern = absolutePattern(template.constant);
			constants.push(pattern);
			// A file may be reached by a path other than the one in the configuration.
			const literalPath = pattern.startsWith('/') && !hasWildcard(pattern);
			const real = literalPath ? reader.realPath?.(pattern) : undefined;
			if (real !== undefined && real !== pattern) constants.push(real);
		}
	}
	if (templates.length === 0) return { hides: () => false, byRequest: false };
	const fixed = compileHiddenTest(constants);
	let lastRoot = '';
	let lastCanHide = true;
	const canHideBelow = (root: string): boolean => {
		if (root !== lastRoot) {
			lastRoot = root;
			lastCanHide = mayHideBelow(constants, root);
		}
		return lastCanHide;
	};
	const test = (hidden: HiddenTest, root: string, path: string, file: Located): boolean => {
		const absolute = root === '/' ? path : root + path;
		if (hidden(absolute, path)) return true;
		if (file.noLinkFollowed || file.path === absolute) return false;
		// A link that is not hidden may lead to a hidden file.
		return hidden(file.path, file.relativePath ?? basename(file.path));
	};
	if (rendered.length === 0) {
		return {
			// Skips the test for roots in which no pattern can match. Often the only pattern is the configuration file, which is always
			// hidden but usually elsewhere.
			hides: (_, root, path, file) => !(file.noLinkFollowed && !canHideBelow(root)) && test(fixed, root, path, file),
			byRequest: false,
		};
	}
	const ofRequest = (x: Exchange): HiddenTest =>
		compileHiddenTest(rendered.map(template => absolutePattern(template.render(x))).filter(Boolean));
	const forRequest: HidesFile = (x, root, path, file) =>
		test(fixed, root, path, file) || test(ofRequest(x), root, path, file);
	return { hides: forRequest, byRequest: true };
}

/** Returns a pattern ready for comparison. A relative path is resolved against the working directory. */
function absolutePattern(pattern: string): string {
	return pattern.includes('/') && !pattern.startsWith('/') ? resolve(pattern) : pattern;
}

/** Reports whether a file is hidden. The result is cached with the file, because a cached file always has the same path. */
function isHidden(server: FileServer, x: Exchange, root: string, path: string, file: OpenFile): boolean {
	if (server.hidesByRequest || file.source === 'disk') return server.hides(x, root, path, file);
	const facts = server.facts.of(file);
	facts.hidden ??= server.hides(x, root, path, file);
	return facts.hidden;
}

/** Returns the test for entries of listings. A hidden file is hidden there too, even under the name of a link to it. */
function entryHides(hidden: HidesFile): HiddenEntryTest {
	return (x, { root, path }, { name, realPath: real }) => {
		const below = `${path}/${name}`;
		const absolute = root === '/' ? below : root + below;
		const inside = real?.startsWith(`${root}/`) ? real.slice(root.length) : undefined;
		return hidden(x, root, below, { path: real ?? absolute, relativePath: real === undefined ? below : inside });
	};
}

function basename(path: string): string {
	return path.slice(path.lastIndexOf('/') + 1);
}

function serveFile(server: FileServer, x: Exchange): void | Promise<void> {
	const asked = filePath(x.request.path);
	if (asked === 'malformed') throw new HttpError(400, 'file_server: the path is malformed');
	if (asked === 'encoded-slash') return missing(server, x);
	const lookup: Lookup = { root: server.root(x), asked };
	if (asked.path === '') return tryIndex(server, x, lookup, 0);
	return open(server, x, lookup, asked.path, -1);
}

/** Opens a path and serves it. `index` is the position in the list of index names; −1 means the requested path itself. */
function open(server: FileServer, x: Exchange, lookup: Lookup, path: string, index: number): void | Promise<void> {
	let file: OpenFile | Promise<OpenFile>;
	try {
		file = server.reader.open(lookup.root, path, server.followSymlinks);
	} catch (error) {
		return notOpened(server, x, lookup, index, error);
	}
	if (file instanceof Promise) {
		return file.then(
			opened => serveOpened(server, x, lookup, path, index, opened),
			error => notOpened(server, x, lookup, index, error),
		);
	}
	return serveOpened(server, x, lookup, path, index, file);
}

function notOpened(
	server: FileServer,
	x: Exchange,
	lookup: Lookup,
	index: number,
	error: unknown,
): void | Promise<void> {
	if (!(error instanceof FileError)) throw error;
	switch (error.reason) {
		case 'directory':
			return tryIndex(server, x, lookup, index + 1);
		case 'not_found':
			return index === -1 ? notFound(server, x, lookup) : tryIndex(server, x, lookup, index + 1);
		case 'forbidden':
			throw new HttpError(403, 'file_server: the file may not be read', { cause: error });
		case 'invalid':
			throw new HttpError(400, 'file_server: the path is malformed', { cause: error });
		case 'unavailable':
			throw unavailable(error);
	}
}

function unavailable(error: FileError): HttpError {
	// The delay is random, so that clients rejected at the same time do not retry at the same time.
	const seconds = 2 + Math.floor(Math.random() * 3);
	return new HttpError(503, 'file_server: the file cannot be read now', {
		cause: error,
		headers: [['Retry-After', String(seconds)]],
	});
}

function tryIndex(server: FileServer, x: Exchange, lookup: Lookup, index: number): void | Promise<void> {
	const name = server.index[index];
	if (name === undefined) return server.browse ? browse(server, server.browse, x, lookup) : missing(server, x);
	return open(server, x, lookup, `${lookup.asked.path}/${name.constant ?? name.render(x)}`, index);
}

/** Lists a folder that has no index. */
function browse(server: FileServer, list: FolderLister, x: Exchange, { root, asked }: Lookup): void | Promise<void> {
	const { path, endsWithSlash } = asked;
	if (path !== '' && server.hides(x, root, path, { path: root === '/' ? path : root + path, relativePath: path })) {
		return missing(server, x);
	}
	refuseOtherMethods(x);
	// Without the trailing slash, the relative links of the listing would be wrong.
	if (!endsWithSlash && lastElementIsAsReceived(x)) return redirect(x, true);
	return list(x, { root, path }).catch(error => {
		if (!(error instanceof FileError)) throw error;
		if (error.reason === 'not_found') return missing(server, x);
		if (error.reason === 'unavailable') throw unavailable(error);
		throw new HttpError(error.reason === 'forbidden' ? 403 : 400, 'file_server: the folder may not be listed', {
			cause: error,
		});
	});
}

function refuseOtherMethods(x: Exchange): void {
	const { method } = x.request;
	if (method === 'GET' || method === 'HEAD' || x.error !== undefined) return;
	throw new HttpError(405, `file_server: ${method} is not allowed`, { headers: [['Allow', 'GET, HEAD']] });
}

/**
 * Answers for a path that does not exist. A path that continues below a file is malformed (400). If that file is hidden or
 * cannot be opened, the answer reveals nothing about it.
 */
function notFound(server: FileServer, x: Exchange, { root, asked }: Lookup): void | Promise<void> {
	const file = fileAbove(server, root, asked.path);
	if (file === undefined) return missing(server, x);
	const judge = (opened: OpenFile): void | Promise<void> => {
		const shown = !isHidden(server, x, root, file, opened);
		opened.close();
		if (!shown) return missing(server, x);
		throw new HttpError(400, 'file_server: the path leads on below a file');
	};
	const unreachable = (error: unknown): void | Promise<void> => {
		if (error instanceof FileError) return missing(server, x);
		throw error;
	};
	let opened: OpenFile | Promise<OpenFile>;
	try {
		opened = server.reader.open(root, file, server.followSymlinks);
	} catch (error) {
		return unreachable(error);
	}
	return opened instanceof Promise ? opened.then(judge, unreachable) : judge(opened);
}

/** Returns the nearest existing path above `below`, if it is a file. */
function fileAbove({ reader }: FileServer, root: string, below: string): string | undefined {
	const ends: number[] = [];
	for (let end = below.indexOf('/', 1); end !== -1; end = below.indexOf('/', end + 1)) ends.push(end);
	// Symbolic links are checked when the file is opened.
	const kindAt = (at: number) => reader.kind(root, below.slice(0, ends[at]), true);
	let missing = ends.length;
	try {
		// The parent folder usually exists. Otherwise, a binary search finds the first missing folder, because a client may send
		// thousands of segments.
		for (let exists = -1, at = missing - 1; exists + 1 < missing; at = (exists + missing) >> 1) {
			const kind = kindAt(at);
			if (kind === 'file') return below.slice(0, ends[at]);
			if (kind === undefined) missing = at;
			else exists = at;
		}
	} catch (error) {
		if (!(error instanceof FileError)) throw error;
	}
	return undefined;
}

function missing(server: FileServer, x: Exchange): void | Promise<void> {
	if (server.passThru) {
		x.answeredBy = '';
		return server.next(x);
	}
	throw new HttpError(404, 'file_server: there is no such file');
}

function serveOpened(
	server: FileServer,
	x: Exchange,
	lookup: Lookup,
	path: string,
	index: number,
	file: OpenFile,
): void | Promise<void> {
	let kept = false;
	try {
		if (isHidden(server, x, lookup.root, path, file)) {
			return index === -1 ? missing(server, x) : tryIndex(server, x, lookup, index + 1);
		}
		refuseOtherMethods(x);
		const { endsWithSlash } = lookup.asked;
		if (cameWithSlash(x, endsWithSlash) !== (index !== -1) && server.canonical && x.error === undefined) {
			if (lastElementIsAsReceived(x)) {
				redirect(x, index !== -1);
				return;
			}
		}
		// If the path ends with a slash, the relative links of the page would be wrong.
		if (index === -1 && endsWithSlash && !server.ignoresSlash) return missing(server, x);
		const sidecar =
			server.codings.length > 0
				? openSidecar(x, server.reader, lookup.root, path, server.followSymlinks, server.codings)
				: undefined;
		if (sidecar) {
			let keptSidecar = false;
			try {
				keptSidecar = answer(server, x, sidecar.file, file.path, sidecar.coding);
			} finally {
				if (!keptSidecar) sidecar.file.close();
			}
		} else kept = answer(server, x, file, file.path, undefined);
	} catch (error) {
		throw error instanceof FileError ? unavailable(error) : error;
	} finally {
		if (!kept) file.close();
	}
}

/** Reports whether the path ended with a slash as the client sent it: the client resolves relative links against that path. */
function cameWithSlash(x: Exchange, endsWithSlash: boolean): boolean {
	const { path } = x.received;
	return path === x.request.path ? endsWithSlash : path.charCodeAt(path.length - 1) === 47;
}

/**
 * Reports whether the last element is as the client sent it, so that a redirect may add or remove the slash. A rewritten last
 * element is unrelated to the client's slash, and a path that ends in a dot segment has no slash to remove: redirecting would
 * loop.
 */
function lastElementIsAsReceived(x: Exchange): boolean {
	const element = lastElement(x.received.path);
	return element === lastElement(x.request.path) && !/^(?:\.|%2e){1,2}$/i.test(element);
}

function lastElement(path: string): string {
	let end = path.length;
	while (end > 0 && path[end - 1] === '/') end -= 1;
	return path.slice(path.lastIndexOf('/', end - 1) + 1, end);
}

function withoutOuterSlashes(path: string): string {
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
	const path = withoutOuterSlashes(x.received.path.replaceAll('\\', '%5C'));
	const query = x.received.query ? `?${x.received.query}` : '';
	x.response.status = 308;
	x.response.headers.set('Location', `/${path}${withSlash && path !== '' ? '/' : ''}${query}`);
	x.response.body = null;
}

/**
 * Fills the response; returns true if its body will close the file. `named` is the requested file, which a sidecar may replace.
 */
function answer(
	server: FileServer,
	x: Exchange,
	file: OpenFile,
	named: string,
	coding: SidecarCoding | undefined,
): boolean {
	const { request, response } = x;
	const headers = response.headers;
	const now = x.now();
	const status = server.status?.(x) ?? x.error?.status ?? 200;
	const facts = server.facts.of(file);
	const own = ownValidators(
		facts,
		now,
		server.tagExtensions.length > 0 ? sidecarTag(server.reader, file, server.tagExtensions) : undefined,
	);
	const validators: Validators = { etag: headers.get('etag') ?? own.etag, modified: own.modified };
	const isPlain = status === 200;

	const precondition = isPlain ? evaluatePreconditions(request.headers, validators, now) : 'proceed';
	if (precondition === 'failed') {
		response.status = 412;
		response.body = null;
		return false;
	}
	const type = headers.get('content-type') ?? (coding === undefined ? facts.type : contentType(named));
	const range =
		isPlain && precondition === 'proceed' && request.method === 'GET' ? request.headers.combined('range') : undefined;
	const ranges =
		range !== undefined && rangeApplies(request.headers, validators, now) ? parseRange(range, file.size) : 'ignore';

	// Reading may fail, so the bytes are read before any field is set.
	let body: Uint8Array | string | BodySource | null = null;
	if (precondition === 'proceed' && ranges !== 'unsatisfiable') {
		// If the method was rewritten to HEAD, the client still expects the bytes.
		if (x.received.method === 'HEAD') body = new Unsent(file.size);
		else if (ranges === 'ignore') {
			body = file.body(0, file.size);
			x.servedFile = file;
			x.servedBody = body;
		} else if (ranges.length === 1) body = file.body(ranges[0]!.start, ranges[0]!.end);
		else {
			const boundary = randomUUID().replaceAll('-', '');
			body = multipartRanges(
				ranges,
				file.size,
				type,
				boundary,
				part => file.body(part.start, part.end, true),
				() => file.close(),
			);
			headers.set('Content-Type', `multipart/byteranges; boundary=${boundary}`);
		}
	}

	x.fileSource = file.source;
	headers.add('Vary', 'Accept-Encoding');
	if (own.etag !== undefined && !headers.has('etag')) headers.add('Etag', own.etag);
	if (own.modified !== undefined) headers.set('Last-Modified', dateOf(own.modified, facts));
	response.body = body;
	if (precondition === 'not-modified') {
		response.status = 304;
		return false;
	}
	if (coding !== undefined) headers.set('Content-Encoding', coding);
	if (isPlain) headers.set('Accept-Ranges', 'bytes');
	if (ranges === 'unsatisfiable') {
		response.status = 416;
		headers.set('Content-Range', `bytes */${file.size}`);
		return false;
	}
	if (type !== undefined && !headers.has('content-type')) headers.add('Content-Type', type);
	if (ranges === 'ignore') response.status = status;
	else {
		response.status = 206;
		if (ranges.length === 1) headers.set('Content-Range', contentRange(ranges[0]!, file.size));
	}
	return x.received.method !== 'HEAD';
}

/** Returns the entity tag and date of a file. */
function ownValidators({ etag, seconds }: FileFacts, now: number, tag: string | undefined): Validators {
	// A future date must not be sent (RFC 9110 §8.8.2.1).
	const modified = seconds === undefined ? undefined : Math.min(seconds, Math.floor(now / 1000));
	return { etag: tag ?? etag, modified };
}

function dateOf(modified: number, { seconds, date }: FileFacts): string {
	return modified === seconds ? date : new Date(modified * 1000).toUTCString();
}

/** The body of a response to HEAD. Only its length matters, because it is never read. */
class Unsent implements BodySource {
	readonly length: number;

	constructor(length: number) {
		this.length = length;
	}

	pull(): null {
		return null;
	}

	cancel(): void {}
}
