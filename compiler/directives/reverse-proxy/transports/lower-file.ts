/** Files that options of TLS to upstreams name. */
import path from 'node:path';
import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Word } from '../../../syntax/ast.ts';

/** The path of a file, absolute. */
export function lowerFile(word: Word, cx: LowerContext): string {
	return path.resolve(cx.folderOf(word.span), word.text);
}
