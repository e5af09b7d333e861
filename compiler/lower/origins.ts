/** Where the objects of a lowered document came from: JSON pointers to spans of text. */
import type { SourceSpan } from '../source/source.ts';

interface Origin {
	readonly span: SourceSpan;
	fields: { readonly [field: string]: SourceSpan | undefined } | undefined;
}

/** Remembers origins by object while lowering, and finds the nearest one for a pointer afterwards. */
export class Origins {
	readonly #origins = new Map<object, Origin>();

	/** Remembers an object's span, and those of its fields. A later call adds fields and leaves the span. */
	remember(value: object, span: SourceSpan, fields?: { readonly [field: string]: SourceSpan | undefined }): void {
		const known = this.#origins.get(value);
		if (known) known.fields = { ...known.fields, ...fields };
		else this.#origins.set(value, { span, fields });
	}

	/** Gives one object's origin to the object that takes its place. */
	move(from: object, to: object): void {
		const origin = this.#origins.get(from);
		if (origin) this.#origins.set(to, origin);
	}

	/** Whether an object's origin is known. */
	has(value: object): boolean {
		return this.#origins.has(value);
	}

	/** The span of the innermost remembered object or field on the way to a pointer (RFC 6901) into `document`. */
	locate(document: unknown, pointer: string): SourceSpan | undefined {
		let value = document;
		let found = this.spanOf(value);
		if (pointer === '') return found;
		for (const escaped of pointer.slice(1).split('/')) {
			if (typeof value !== 'object' || value === null) break;
			const key = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
			found = this.#origins.get(value)?.fields?.[key] ?? found;
			value = (value as { [key: string]: unknown })[key];
			found = this.spanOf(value) ?? found;
		}
		return found;
	}

	/** The span of an object, if it was remembered itself. */
	spanOf(value: unknown): SourceSpan | undefined {
		return typeof value === 'object' && value !== null ? this.#origins.get(value)?.span : undefined;
	}
}

/** Remembers nothing: for what is lowered without anybody asking for places yet. */
export class NoOrigins extends Origins {
	override remember(): void {}
	override move(): void {}
	override has(): boolean {
		return true;
	}
}
