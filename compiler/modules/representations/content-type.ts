/** Content types by file extension. */
import { lazily } from '../../exchange/lazily.ts';
import { TextTable } from '../../exchange/text-table.ts';
import { extensionTypes } from './extension-table.ts';

const contentTypes: () => TextTable<string> = lazily(() => new TextTable(extensionTypes()));

/**
 * Returns the `Content-Type` of a file by its extension (the text after the last `.`, ignoring case), with `charset=utf-8` for
 * text types; undefined if the extension is unknown or missing.
 */
export function contentType(path: string): string | undefined {
	const lastDot = path.lastIndexOf('.');
	if (lastDot === -1 || path.indexOf('/', lastDot) !== -1) return undefined;
	const extension = path.slice(lastDot + 1);
	const exactCaseType = contentTypes().get(extension, extension.length);
	if (exactCaseType !== undefined) return exactCaseType;
	const lowerExtension = extension.toLowerCase();
	return contentTypes().get(lowerExtension, lowerExtension.length);
}
