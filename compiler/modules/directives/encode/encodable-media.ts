/** The media types that are worth compressing: textual formats, and binary formats without compression of their own. */

const ENCODABLE_APPLICATION_TYPES: ReadonlySet<string> = new Set(
	[
		...['atom+xml', 'eot', 'font', 'geo+json', 'graphql+json', 'javascript', 'json', 'ld+json', 'manifest+json'],
		...['opentype', 'otf', 'rss+xml', 'truetype', 'ttf', 'vnd.api+json', 'vnd.ms-fontobject', 'wasm', 'x-httpd-cgi'],
		...['x-javascript', 'x-opentype', 'x-otf', 'x-perl', 'x-protobuf', 'x-ttf', 'xhtml+xml', 'xml'],
	].map(subtype => `application/${subtype}`),
);

const OTHER_ENCODABLE_TYPES: ReadonlySet<string> = new Set([
	...['font/ttf', 'font/otf', 'image/svg+xml', 'image/vnd.microsoft.icon', 'image/x-icon'],
	...['multipart/bag', 'multipart/mixed', 'font/collection', 'font/sfnt'],
]);

/** Reports whether a `Content-Type` value names a media type worth compressing. */
export function isEncodable(contentType: string | undefined): boolean {
	if (contentType === undefined) return false;
	const end = contentType.indexOf(';');
	const type = (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
	return (
		type.startsWith('text/') ||
		ENCODABLE_APPLICATION_TYPES.has(type) ||
		OTHER_ENCODABLE_TYPES.has(type) ||
		/\+(?:json|xml)$/.test(type)
	);
}
