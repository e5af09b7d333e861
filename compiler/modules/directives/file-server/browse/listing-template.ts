/** Renders listings with a custom template. */

import type { Exchange } from '../../../../exchange/exchange.ts';
import { HttpError } from '../../../../exchange/http-error.ts';
import type { FolderEntry } from '../../../../exchange/leases.ts';
import type { CompileContext } from '../../../contract/compile-context.ts';
import { Suspension } from '../../../templates/template-error.ts';
import { executeTextTemplate } from '../../../templates/text-template.ts';
import { objectMethod, TimeValue } from '../../../templates/time-value.ts';
import type { TemplateObject, Value } from '../../../templates/value.ts';
import { toPageError } from '../../templates/page-functions.ts';
import { PageHost } from '../../templates/page-host.ts';
import { TemplatesStepState } from '../../templates/page-site.ts';
import { type FolderListing, formatEntryUrl, formatSize } from './listing.ts';

const MAX_TEMPLATE_BYTES = 1024 * 1024;

export type ListingRenderer = (x: Exchange, listing: FolderListing) => string | Promise<string>;

/** Compiles a renderer that uses a template file. The file is read for each listing, so that changes to it apply immediately. */
export function compileListingTemplate(
	templateFile: string,
	root: string | undefined,
	cx: CompileContext,
): ListingRenderer {
	const stepState = new TemplatesStepState({ handler: 'render', ...(root !== undefined && { root }) }, cx);
	const pathTemplate = cx.template(templateFile, 'empty');
	return (x, listing) => {
		const templatePath = pathTemplate.render(x);
		const templateBytes = stepState.reader.readStart(templatePath, MAX_TEMPLATE_BYTES + 1);
		if (!templateBytes || templateBytes.byteLength > MAX_TEMPLATE_BYTES) {
			throw new HttpError(500, 'file_server: the template of the listing cannot be read');
		}
		const templateSource = { text: Buffer.from(templateBytes).toString('utf8') };
		const host = new PageHost(x, stepState);
		const renderOrSuspend = (): string | Promise<string> => {
			try {
				const template = stepState.compile(templateSource, templatePath);
				const data = new ListingObject(listing, host);
				return executeTextTemplate(template, { name: templatePath, data, budget: host.budget, deps: host });
			} catch (error) {
				if (!(error instanceof Suspension)) throw toPageError(error);
				return error.pendingResult.then(() => {
					host.restart();
					return renderOrSuspend();
				});
			}
		};
		return renderOrSuspend();
	};
}

/** The value of `.` in a listing template: the listing, plus everything available in other templates. */
class ListingObject implements TemplateObject {
	readonly typeName = 'fileserver.browseTemplateContext';
	readonly #listing: FolderListing;
	readonly #host: PageHost;

	constructor(listing: FolderListing, host: PageHost) {
		this.#listing = listing;
		this.#host = host;
	}

	member(name: string): Value | undefined {
		const listing = this.#listing;
		switch (name) {
			case 'Name':
				return listing.name;
			case 'Path':
				return listing.path;
			case 'CanGoUp':
				return listing.canGoUp;
			case 'Items':
				return listing.items.map(entry => new EntryObject(entry));
			case 'NumDirs':
				return BigInt(listing.folderCount);
			case 'NumFiles':
				return BigInt(listing.fileCount);
			case 'TotalFileSize':
				return BigInt(listing.totalBytes);
			case 'HumanTotalFileSize':
				return objectMethod(name, '', () => formatSize(listing.totalBytes));
			case 'Sort':
				return listing.sort;
			case 'Order':
				return listing.order;
			case 'Limit':
				return BigInt(listing.limit);
			case 'Offset':
				return BigInt(listing.offset);
			case 'Layout':
				return listing.layout;
			case 'Filter':
				return listing.filter;
			case 'Breadcrumbs':
				return listBreadcrumbs(listing.path);
			default:
				return this.#host.data.member(name);
		}
	}

	text(): string {
		return this.#listing.path;
	}
}

/** Returns links to the folders that contain the listed one, the top folder first. */
function listBreadcrumbs(path: string): Value[] {
	const folderNames = path.split('/').slice(0, -1);
	return folderNames.map(
		(element, index) =>
			new Map<string, Value>([
				['Link', '../'.repeat(folderNames.length - 1 - index)],
				['Text', element],
			]),
	);
}

/** The value of an element of `.Items` in a listing template. */
class EntryObject implements TemplateObject {
	readonly typeName = 'fileserver.fileInfo';
	readonly #entry: FolderEntry;

	constructor(entry: FolderEntry) {
		this.#entry = entry;
	}

	member(name: string): Value | undefined {
		const { mtimeNs, name: fileName, size, type, mode, target } = this.#entry;
		const modificationTime = (): TimeValue => new TimeValue(Number(mtimeNs / 1_000_000n), 'UTC');
		switch (name) {
			case 'Name':
				return fileName;
			case 'Size':
				return BigInt(size);
			case 'URL':
				return formatEntryUrl(this.#entry);
			case 'ModTime':
				return modificationTime();
			case 'Mode':
				return BigInt(mode);
			case 'IsDir':
				return type === 'directory';
			case 'IsSymlink':
				return target !== undefined;
			case 'SymlinkPath':
				return target ?? '';
			case 'HumanSize':
				return objectMethod(name, '', () => formatSize(size));
			case 'HumanModTime':
				return objectMethod(name, 'string', (layout: string) => modificationTime().format(layout));
			case 'HasExt':
				return objectMethod(name, 'string...', (...extensions: string[]) =>
					extensions.some(extension => fileName.toLowerCase().endsWith(extension.toLowerCase())),
				);
			default:
				return undefined;
		}
	}

	text(): string {
		return this.#entry.name;
	}
}
