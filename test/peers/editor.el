;;; Drives Emacs's own client, eglot, against `svc language-server`, which cli/editors/emacs starts. -*- lexical-binding: t -*-
;; Arguments are in the environment: FOLDER and RESULT.
(require 'json)
(require 'eglot)
(require 'xref)
(defvar folder (getenv "FOLDER"))
(defvar result nil)

(defun note (what value) (push (cons what value) result))

(defun finish ()
  (with-temp-file (getenv "RESULT") (insert (json-encode result)))
  (kill-emacs 0))

(defun wait-for (what condition)
  (let ((end (+ (float-time) 30)))
    (while (not (funcall condition))
      (when (> (float-time) end) (note 'failure what) (finish))
      (accept-process-output nil 0.02))))

;; In a batch there is no idle time, in which flymake would ask for diagnostics.
(defvar codes nil)
(cl-defmethod eglot-handle-notification :after (_server (_method (eql textDocument/publishDiagnostics)) &key uri diagnostics &allow-other-keys)
  (when (string-suffix-p "/Configfile" uri)
    (setq codes (mapcar (lambda (one) (plist-get one :code)) diagnostics))))

(setq make-backup-files nil eglot-confirm-server-initiated-edits nil eglot-sync-connect 30 eglot-send-changes-idle-time 0)
;; Eglot asks before it edits several files.
(fset 'y-or-n-p (lambda (&rest _) t))
(require 'svc-mode)
;; Eglot connects when Emacs is idle, which a batch never is.
(fset 'eglot-ensure #'ignore)
(find-file (expand-file-name "Configfile" folder))
(note 'mode (symbol-name major-mode))
(apply #'eglot (eglot--guess-contact))
(wait-for "diagnostics" (lambda () codes))
(note 'diagnostics codes)

(font-lock-ensure)
(note 'colors (list (get-text-property (progn (goto-char (point-min)) (search-forward "\tuse") (1- (point))) 'face)
                    (get-text-property (1+ (point)) 'face)))

(defun at (line column) (goto-char (point-min)) (forward-line (1- line)) (forward-char column))
(defun text () (buffer-substring-no-properties (point-min) (point-max)))

;; Applies the fix of `rspond`.
(at 5 3)
(let* ((actions (jsonrpc-request (eglot--current-server-or-lose) :textDocument/codeAction
                 (list :textDocument (eglot--TextDocumentIdentifier)
                       :range (list :start (eglot--pos-to-lsp-position) :end (eglot--pos-to-lsp-position))
                       :context '(:diagnostics []))))
       (action (aref actions 0)))
  (note 'action (plist-get action :title))
  (eglot--apply-workspace-edit (plist-get action :edit)))
(eglot--signal-textDocument/didChange)
(wait-for "the fix" (lambda () (not (member "directive/unknown" codes))))
(note 'left codes)

(at 4 6)
(note 'completions (all-completions "" (nth 2 (eglot-completion-at-point))))
(svc-explain-request "http://a.test/")
(note 'trace (with-current-buffer "*svc request*" (text)))
(at 4 6)
(let ((found (car (xref-backend-definitions 'eglot "common"))))
  (note 'jump (xref-item-summary found))
  (note 'file (file-name-nondirectory (xref-location-group (xref-item-location found)))))
(at 4 6)
(eglot-rename "renamed")
(note 'renamed (list (text) (with-current-buffer (find-file-noselect (expand-file-name "common.conf" folder)) (text))))
(eglot-format-buffer)
(note 'formatted (text))
(dolist (buffer (buffer-list)) (with-current-buffer buffer (set-buffer-modified-p nil)))
(finish)
