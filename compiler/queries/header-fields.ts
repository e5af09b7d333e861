/** Names of header fields that completion offers (RFC 9110, RFC 9111, RFC 6265, the Fetch standard and common practice). */

export const REQUEST_FIELDS: readonly string[] = [
	...['Accept', 'Accept-Encoding', 'Accept-Language', 'Authorization', 'Cache-Control', 'Connection', 'Content-Length'],
	...['Content-Type', 'Cookie', 'Forwarded', 'Host', 'If-Match', 'If-Modified-Since', 'If-None-Match', 'If-Range'],
	...['Origin', 'Range', 'Referer', 'Sec-Fetch-Mode', 'Sec-Fetch-Site', 'Te', 'Traceparent', 'Upgrade', 'User-Agent'],
	...['Via', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'X-Real-Ip', 'X-Request-Id'],
	...['X-Requested-With'],
];

export const RESPONSE_FIELDS: readonly string[] = [
	...['Accept-Ranges', 'Access-Control-Allow-Credentials', 'Access-Control-Allow-Headers'],
	...['Access-Control-Allow-Methods', 'Access-Control-Allow-Origin', 'Access-Control-Expose-Headers'],
	...['Access-Control-Max-Age', 'Age', 'Allow', 'Alt-Svc', 'Cache-Control', 'Clear-Site-Data', 'Content-Disposition'],
	...['Content-Encoding', 'Content-Language', 'Content-Location', 'Content-Security-Policy', 'Content-Type'],
	...['Cross-Origin-Embedder-Policy', 'Cross-Origin-Opener-Policy', 'Cross-Origin-Resource-Policy', 'Etag', 'Expires'],
	...['Last-Modified', 'Link', 'Location', 'Permissions-Policy', 'Referrer-Policy', 'Retry-After', 'Server'],
	...['Server-Timing', 'Set-Cookie', 'Strict-Transport-Security', 'Surrogate-Control', 'Surrogate-Key', 'Vary', 'Via'],
	...['Www-Authenticate', 'X-Content-Type-Options', 'X-Frame-Options', 'X-Robots-Tag'],
];
