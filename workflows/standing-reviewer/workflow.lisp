; Stays up and reviews every push. Each push is one fact, taken by one reviewer, so several of them share the
; work; its review is a fact too. A push whose range is `stop` lets one end.
;
;   raymond workflow start workflows/standing-reviewer --label reviewer
;   raymond signal git/push --key "$new" --value "$old..$new" --dir "$work/.raymond"    # in a git hook
;   raymond facts --label review/done
;   raymond signal git/push --key stop --value stop

(workflow standing-reviewer
  (metadata
    (label "Standing reviewer of pushes")
    (description "Reviews each push that is signalled, until it is told to stop."))

  (roles
    (reviewer :agent-kind "claude-code"))

  (state listen
    (wait (signal git/push :consume true :as range))
    (branch
      (on (matches @range "^stop$") (goto stopped))))

  (state review
    (action
      (send-prompt
        :agent reviewer
        :template "Someone has pushed ~a. Read `git diff ~a` and the code around it. Reply with what is wrong, each with its file and line, the worst first; or with LGTM if nothing is."
        :args (@range @range)
        :request-id review)
      (await (transcript-response :request-id review :on-error unreviewed))
      (assert review/done :key @range :value (response review))
      (log "reviewed ~a" @range))
    (goto listen))

  (state unreviewed
    (action
      (assert review/failed :key @range)
      (log "~a could not be reviewed" @range))
    (goto listen))

  (state stopped
    (terminal :result "stopped")))
